// Which programs a kernel gives to its device: there is no list of them.
#pragma once

#include "runtime/registry.hpp"

namespace assay::falsify {

/// Prepares calls of the kernel with dims as campaigns draw them, enough to reach every path that it chooses by dims: a
/// filter on the device sees what it would run. Calls that the kernel refuses or that are too large are left out.
void prepare_drawn_calls(const Kernel& kernel, Device& device);

}  // namespace assay::falsify
