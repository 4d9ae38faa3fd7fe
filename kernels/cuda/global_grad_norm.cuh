// The global norm of a gradient, shared by global_grad_norm and clip_grad_norm: partial sums by blocks, then one block
// adds them.
#pragma once

#include <algorithm>

#include "kernels/cuda/block_reduce.cuh"
#include "kernels/cuda/rows.cuh"

namespace assay::ASSAY_CUDA_NAMESPACE {

/// g (n): dense. `partial` holds a float for each block.
struct GradNorm {
  Index n;
  const float* g;
  float* partial;
  float* norm;
};

namespace {  // nvcc has no inline kernels

/// partial[b] = sum of the squares of block b's elements. A thread takes every 256 * blocks-th group of four.
__global__ void __launch_bounds__(256) squares_kernel(GradNorm a) {
  ASSAY_SHARED(float, sums, [8]);
  const bool aligned = aligned16(a.g);
  float sum = 0.0f;
  for (Index i = (Index{blockIdx.x} * blockDim.x + threadIdx.x) * 4; i < a.n; i += Index{gridDim.x} * blockDim.x * 4) {
    const float4 v = load4(a.g, i, a.n, aligned);
    sum += (v.x * v.x + v.y * v.y) + (v.z * v.z + v.w * v.w);
  }
  sum = block_reduce(sum, Add{}, sums);
  if (threadIdx.x == 0) a.partial[blockIdx.x] = sum;
}

/// norm = sqrt(sum of the partial sums). One block.
__global__ void __launch_bounds__(256) norm_kernel(GradNorm a, Index blocks) {
  ASSAY_SHARED(float, sums, [8]);
  float sum = 0.0f;
  for (Index b = threadIdx.x; b < blocks; b += blockDim.x) sum += a.partial[b];
  sum = block_reduce(sum, Add{}, sums);
  if (threadIdx.x == 0) a.norm[0] = sqrtf(sum);
}

}  // namespace

/// Returns the number of blocks of `threads` for a vector: a thousand fill any device, and one block can add their
/// sums.
inline unsigned norm_blocks(Index n, unsigned threads) {
  return static_cast<unsigned>(std::clamp<Index>((n + 4 * Index{threads} - 1) / (4 * Index{threads}), 1, 1024));
}

/// Takes scratch of at most 4 KiB; the device frees it after use (Device::allocate).
inline void launch_norm(Index n, const float* g, float* norm, float* partial, unsigned blocks, unsigned threads,
                        Device& device) {
  const GradNorm a{n, g, partial, norm};
  launch(&squares_kernel, {dim3(blocks), dim3(threads)}, device, a);
  launch(&norm_kernel, {dim3(1), dim3(row_threads(blocks, 1))}, device, a, Index{blocks});
}

}  // namespace assay::ASSAY_CUDA_NAMESPACE
