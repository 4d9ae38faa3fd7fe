// Machine code made at run time, as functions that a launch filter may give.
#pragma once

#include <memory>
#include <string>

#include "runtime/cuda/cuda_device.hpp"

namespace assay::falsify {

using Cubin = std::shared_ptr<const std::string>;

/// The entry of this name, loaded into this process once and kept to its end. Throws DeviceError where it cannot be.
const void* loaded(CudaDevice& device, const Cubin& cubin, std::string_view name);

}  // namespace assay::falsify
