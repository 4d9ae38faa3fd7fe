// Sums and maxima over the threads of a block, in an order set by the number of threads alone.
#pragma once

#include <cuda_runtime.h>

#include "runtime/cuda/launch.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE {

struct Add {
  __device__ float operator()(float x, float y) const { return x + y; }
};
struct Max {
  __device__ float operator()(float x, float y) const { return fmaxf(x, y); }
};

/// Returns x combined over all threads of the block, with the same bits in each: a tree over the lanes of each warp,
/// then the warps in turn. Whole warps, at most 32; `partial` holds a float per warp and is free again after the next
/// barrier.
template <class Combine>
__device__ inline float block_reduce(float x, Combine combine, float* partial) {
  const int warp = static_cast<int>(threadIdx.x) / 32, warps = static_cast<int>(blockDim.x) / 32;
#pragma unroll
  for (int lanes = 16; lanes > 0; lanes /= 2) x = combine(x, __shfl_xor_sync(0xffffffffU, x, lanes));
  if (threadIdx.x % 32 == 0) partial[warp] = x;
  __syncthreads();
  float all = partial[0];
  for (int w = 1; w < warps; ++w) all = combine(all, partial[w]);
  return all;
}

/// Returns the threads of a block for n items, `each` of them per thread: whole warps, at most 256 threads.
inline unsigned row_threads(Index n, Index each) {
  const Index wanted = (n + each - 1) / each;
  return static_cast<unsigned>(wanted <= 32 ? 32 : wanted >= 256 ? 256 : (wanted + 31) / 32 * 32);
}

__device__ inline bool aligned16(const float* row) { return reinterpret_cast<std::uintptr_t>(row) % 16 == 0; }

}  // namespace assay::ASSAY_CUDA_NAMESPACE
