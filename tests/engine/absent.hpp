// A device that is unavailable on every machine.
#pragma once

#include "runtime/device.hpp"

namespace assay {

/// Makes the CUDA back end unavailable in this process and in workers forked later.
inline Backend absent_backend() {
  DeviceRegistration(Backend::cuda,
                     []() -> std::unique_ptr<Device> { throw Unavailable("cuda", "the test took it away"); });
  return Backend::cuda;
}

}  // namespace assay
