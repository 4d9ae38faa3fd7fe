// y = x + alpha r.
#pragma once

#include "kernels/cuda/elementwise.cuh"
#include "ops/residual_add.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE {

/// What a kernel does wrong on purpose (falsify/mutants/cuda).
enum class ResidualAddFault { none, alpha_ignored, alpha_on_skip };

template <ResidualAddFault fault>
struct ResidualAdd {
  float alpha;
  __device__ float operator()(const float (&x)[2]) const {
    if constexpr (fault == ResidualAddFault::alpha_ignored) return x[0] + x[1];
    if constexpr (fault == ResidualAddFault::alpha_on_skip) return fmaf(alpha, x[0], x[1]);
    return fmaf(alpha, x[1], x[0]);
  }
};

/// y[i,j] = x[i,j] + alpha r[i,j], fused; x, r, y (m,n) float32, row-major, any leading dimension, y apart. 12 m n
/// bytes.
template <ResidualAddFault fault = ResidualAddFault::none, MapFault map_fault = MapFault::none>
void residual_add(const ops::ResidualAddArgs& args, Device& device) {
  map<map_fault>(map_of(args.y, args.x, args.r), ResidualAdd<fault>{static_cast<float>(args.alpha)}, device);
}

}  // namespace assay::ASSAY_CUDA_NAMESPACE
