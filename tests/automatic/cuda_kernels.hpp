// Kernels whose PTX the test mutates.
#pragma once

#include "runtime/device.hpp"

namespace assay {

/// x[i] += 1 for 32 elements.
void add_one(float* x, Device& device);
/// x[0] = the sum of 1 to n by a loop that no compiler replaces.
void sum_up(float* x, int n, Device& device);

}  // namespace assay
