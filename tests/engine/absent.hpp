// A device that is not here, on every machine.
#pragma once

#include "runtime/device.hpp"

namespace assay {

/// From now on in this process, and in workers forked later, the CUDA back end is unavailable.
inline Backend absent_backend() {
  DeviceRegistration(Backend::cuda, []() -> std::unique_ptr<Device> { throw Unavailable("cuda", "the test took it away"); });
  return Backend::cuda;
}

}  // namespace assay
