// dst = dst + alpha src.
#pragma once

#include "kernels/cuda/elementwise.cuh"
#include "ops/accumulate.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE {

/// What a kernel does wrong on purpose (falsify/mutants/cuda).
enum class AccumulateFault { none, overwrites, alpha_ignored };

template <AccumulateFault fault>
struct Accumulate {
  float alpha;
  __device__ float operator()(const float (&x)[2]) const {
    if constexpr (fault == AccumulateFault::overwrites) return alpha * x[1];
    if constexpr (fault == AccumulateFault::alpha_ignored) return x[0] + x[1];
    return fmaf(alpha, x[1], x[0]);
  }
};

/// dst[i,j] += alpha src[i,j], fused; dst, src (m,n) float32, row-major, any leading dimension, apart. 12 m n bytes.
template <AccumulateFault fault = AccumulateFault::none, MapFault map_fault = MapFault::none>
void accumulate(const ops::AccumulateArgs& args, Device& device) {
  map<map_fault>(map_of(args.dst, args.dst, args.src), Accumulate<fault>{static_cast<float>(args.alpha)}, device);
}

}  // namespace assay::ASSAY_CUDA_NAMESPACE
