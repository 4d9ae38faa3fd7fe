// Sums and means of columns: bias_add_backward and mean_pool.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/view.hpp"
#include "runtime/cuda/launch.hpp"
#include "runtime/registry.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE {

/// out[b,j] = sum of in[b,i,j] over i < rows, or their mean over i < lengths[b] if lengths are given; with `copy`, also
/// copy[i,j] = in[0,i,j]. Elements are at b * in_batch + i * in_ld + j, b * out_ld + j and i * copy_ld + j; offsets
/// take 64 bits.
struct ColumnSums {
  Index batches, rows, columns;
  const float* in;
  Index in_batch, in_ld;
  const std::int32_t* lengths;
  float* out;
  Index out_ld;
  float* copy;
  Index copy_ld;
};

inline constexpr int kMaxSummingThreads = 1024;

namespace {  // nvcc has no inline kernels

/// A block owns blockDim.x columns. Each of its blockDim.y stripes takes every blockDim.y-th row; stripe sums are added
/// in order. No order depends on the device or on other batches.
__global__ void __launch_bounds__(kMaxSummingThreads) column_sum_kernel(ColumnSums a) {
  ASSAY_SHARED(float, sums, [kMaxSummingThreads]);
  const int width = static_cast<int>(blockDim.x), stripes = static_cast<int>(blockDim.y);
  const int lane = static_cast<int>(threadIdx.x), stripe = static_cast<int>(threadIdx.y);
  const Index column = Index{blockIdx.x} * width + lane;
  for (Index b = blockIdx.y; b < a.batches; b += gridDim.y) {
    const Index length = a.lengths == nullptr ? a.rows : a.lengths[b];
    float sum = 0.0f;
    if (column < a.columns) {
      const float* const in = a.in + b * a.in_batch + column;
#pragma unroll 4
      for (Index i = stripe; i < length; i += stripes) {
        const float x = in[i * a.in_ld];
        sum += x;
        if (a.copy != nullptr) a.copy[i * a.copy_ld + column] = x;
      }
    }
    sums[stripe * width + lane] = sum;
    __syncthreads();
    if (stripe == 0 && column < a.columns) {
      float total = 0.0f;
      for (int s = 0; s < stripes; ++s) total += sums[s * width + lane];
      a.out[b * a.out_ld + column] = a.lengths == nullptr ? total : total / static_cast<float>(length);
    }
    __syncthreads();  // before the next batch overwrites the sums
  }
}

}  // namespace

/// Rows of 8 columns fill a sector of 32 bytes; wider tiles only if there are enough blocks for every multiprocessor.
/// The number of stripes grows once a thread adds more than about eight rows.
inline void column_sums(const ColumnSums& a, Device& device) {
  if (a.batches == 0 || a.columns == 0) return;
  const unsigned width = a.columns >= 4096 ? 32 : 8;
  unsigned stripes = 64 / width;
  while (stripes < kMaxSummingThreads / width && Index{stripes} * 8 < a.rows) stripes *= 2;
  const dim3 grid(blocks_for(a.columns, width), static_cast<unsigned>(std::min<Index>(a.batches, 65535)));
  launch(&column_sum_kernel, {grid, dim3(width, stripes)}, device, a);
}

}  // namespace assay::ASSAY_CUDA_NAMESPACE
