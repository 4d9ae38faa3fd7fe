// Machine code made at run time, as functions for a launch filter.
#pragma once

#include <memory>
#include <string>

#include "runtime/cuda/cuda_device.hpp"

namespace assay::falsify {

using Cubin = std::shared_ptr<const std::string>;

/// Returns the entry of this name, loaded into this process once and never unloaded. Throws DeviceError if loading
/// fails.
const void* loaded(CudaDevice& device, const Cubin& cubin, std::string_view name);

}  // namespace assay::falsify
