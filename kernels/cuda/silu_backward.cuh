// dx = dy times the slope of x sigmoid(x).
#pragma once

#include "kernels/cuda/elementwise.cuh"
#include "ops/silu_backward.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE {

/// What a kernel does wrong on purpose (falsify/mutants/cuda).
enum class SiluBackwardFault { none, sigmoid_slope, no_slope, value_for_argument };

template <SiluBackwardFault fault>
struct SiluBackward {
  __device__ float operator()(const float (&x)[2]) const {
    const float v = x[0], power = expf(-fabsf(v));  // never overflows
    const float larger = 1.0f / (1.0f + power), smaller = power * larger;
    const float s = v < 0.0f ? smaller : larger, rest = v < 0.0f ? larger : smaller;
    if constexpr (fault == SiluBackwardFault::sigmoid_slope) return x[1] * (s * rest);
    if constexpr (fault == SiluBackwardFault::no_slope) return x[1] * s;
    if constexpr (fault == SiluBackwardFault::value_for_argument) return x[1] * fmaf(v * s * s, rest, s);
    return x[1] * fmaf(v * s, rest, s);
  }
};

/// dx[i,j] = dy[i,j] (s + x s (1 - s)), s = sigmoid(x[i,j]); x, dy, dx (m,n) float32, row-major, any leading dimension,
/// dx apart. 12 m n bytes.
template <SiluBackwardFault fault = SiluBackwardFault::none, MapFault map_fault = MapFault::none>
void silu_backward(const ops::SiluBackwardArgs& args, Device& device) {
  map<map_fault>(map_of(args.dx, args.x, args.dy), SiluBackward<fault>{}, device);
}

}  // namespace assay::ASSAY_CUDA_NAMESPACE
