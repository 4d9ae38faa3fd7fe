// The sum of squares shared by global_grad_norm and clip_grad_norm on the CPU.
#pragma once

#include "core/shape.hpp"

namespace assay::cpu {

/// sum_i g[i]^2 in eight vector sums of the processor's widest SIMD, combined in a fixed order.
float sum_of_squares(const float* g, Index n);

/// g[i] *= factor.
void scale_in_place(float* g, Index n, float factor);

}  // namespace assay::cpu
