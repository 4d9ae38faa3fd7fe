// Finds the device programs a kernel launches, by preparing drawn calls.
#pragma once

#include "runtime/registry.hpp"

namespace assay::falsify {

/// Prepares calls of the kernel with dims as campaigns draw them, enough to reach every path that it selects by dims; a
/// filter on the device observes the programs. Calls that the kernel refuses or that are too large are skipped.
void prepare_drawn_calls(const Kernel& kernel, Device& device);

}  // namespace assay::falsify
