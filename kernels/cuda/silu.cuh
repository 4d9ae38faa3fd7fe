// y = x sigmoid(x).
#pragma once

#include "kernels/cuda/elementwise.cuh"
#include "ops/silu.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE {

/// What a kernel does wrong on purpose (falsify/mutants/cuda).
enum class SiluFault { none, exp_of_x, clamped, branches_swapped };

template <SiluFault fault>
struct Silu {
  __device__ float operator()(const float (&x)[1]) const {
    const float v = x[0];
    if constexpr (fault == SiluFault::exp_of_x) {
      const float power = expf(v);  // overflows where x > 88.7: Inf / Inf
      return v * (power / (1.0f + power));
    }
    if constexpr (fault == SiluFault::clamped) return v / (1.0f + expf(-fmaxf(v, -20.0f)));
    const float power = expf(-fabsf(v));  // never overflows
    if constexpr (fault == SiluFault::branches_swapped) return v * ((v < 0.0f ? 1.0f : power) / (1.0f + power));
    return v * ((v < 0.0f ? power : 1.0f) / (1.0f + power));
  }
};

/// y[i,j] = x[i,j] sigmoid(x[i,j]); x, y (m,n) float32, row-major, any leading dimension, apart. 8 m n bytes.
template <SiluFault fault = SiluFault::none, MapFault map_fault = MapFault::none>
void silu(const ops::SiluArgs& args, Device& device) {
  map<map_fault>(map_of(args.y, args.x), Silu<fault>{}, device);
}

}  // namespace assay::ASSAY_CUDA_NAMESPACE
