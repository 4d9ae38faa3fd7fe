// y = alpha x.
#pragma once

#include "kernels/cuda/elementwise.cuh"
#include "ops/scale.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE {

/// What a kernel does wrong on purpose (falsify/mutants/cuda).
enum class ScaleFault { none, divides, zero_skipped };

template <ScaleFault fault>
struct Scale {
  float alpha;
  __device__ float operator()(const float (&x)[1]) const {
    if constexpr (fault == ScaleFault::divides) return x[0] / (1.0f / alpha);
    if constexpr (fault == ScaleFault::zero_skipped)
      return x[0] == 0.0f || alpha == 0.0f || x[0] != x[0] ? 0.0f : alpha * x[0];
    return alpha * x[0];
  }
};

/// y[i,j] = alpha x[i,j]; x, y (m,n) float32, row-major, any leading dimension, apart. One rounding. 8 m n bytes.
template <ScaleFault fault = ScaleFault::none, MapFault map_fault = MapFault::none>
void scale(const ops::ScaleArgs& args, Device& device) {
  map<map_fault>(map_of(args.y, args.x), Scale<fault>{static_cast<float>(args.alpha)}, device);
}

}  // namespace assay::ASSAY_CUDA_NAMESPACE
