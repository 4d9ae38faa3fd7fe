// Sums and means of columns: bias_add_backward and mean_pool.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/cuda/rows.cuh"

namespace assay::ASSAY_CUDA_NAMESPACE {

/// out[b,j] = sum of in[b,i,j] over i < rows, or their mean over i < lengths[b] if lengths are given; with `copy`, also
/// copy[i,j] = in[0,i,j]. Elements are at b * in_batch + i * in_ld + j, b * out_ld + j and i * copy_ld + j; offsets
/// take 64 bits.
template <class S = float, class Sum = float>
struct ColumnSums {
  Index batches, rows, columns;
  const S* in;
  Index in_batch, in_ld;
  const std::int32_t* lengths;
  Sum* out;
  Index out_ld;
  S* copy;
  Index copy_ld;
};

inline constexpr int kMaxSummingThreads = 1024;

namespace {  // nvcc has no inline kernels

/// A block owns blockDim.x columns. Each of its blockDim.y stripes takes every blockDim.y-th row; stripe sums are added
/// in order. No order depends on the device or on other batches.
template <class S, class Sum>
__global__ void __launch_bounds__(kMaxSummingThreads) column_sum_kernel(ColumnSums<S, Sum> a) {
  ASSAY_SHARED(float, sums, [kMaxSummingThreads]);
  const int width = static_cast<int>(blockDim.x), stripes = static_cast<int>(blockDim.y);
  const int lane = static_cast<int>(threadIdx.x), stripe = static_cast<int>(threadIdx.y);
  const Index column = Index{blockIdx.x} * width + lane;
  for (Index b = blockIdx.y; b < a.batches; b += gridDim.y) {
    const Index length = a.lengths == nullptr ? a.rows : a.lengths[b];
    float sum = 0.0f;
    if (column < a.columns) {
      const S* const in = a.in + b * a.in_batch + column;
#pragma unroll 4
      for (Index i = stripe; i < length; i += stripes) {
        const S stored = in[i * a.in_ld];
        const float x = load(stored);
        sum += x;
        if (a.copy != nullptr) a.copy[i * a.copy_ld + column] = stored;
      }
    }
    sums[stripe * width + lane] = sum;
    __syncthreads();
    if (stripe == 0 && column < a.columns) {
      float total = 0.0f;
      for (int s = 0; s < stripes; ++s) total += sums[s * width + lane];
      const float result = a.lengths == nullptr ? total : total / static_cast<float>(length);
      store(a.out[b * a.out_ld + column], result);
    }
    __syncthreads();  // before the next batch overwrites the sums
  }
}

}  // namespace

/// Rows of 8 columns fill a sector of 32 bytes; wider tiles only if there are enough blocks for every multiprocessor.
/// The number of stripes grows once a thread adds more than about eight rows.
template <class S, class Sum>
void column_sums(const ColumnSums<S, Sum>& a, Device& device) {
  if (a.batches == 0 || a.columns == 0) return;
  const unsigned width = a.columns >= 4096 ? 32 : 8;
  unsigned stripes = 64 / width;
  while (stripes < kMaxSummingThreads / width && Index{stripes} * 8 < a.rows) stripes *= 2;
  const dim3 grid(blocks_for(a.columns, width), static_cast<unsigned>(std::min<Index>(a.batches, 65535)));
  launch(&column_sum_kernel<S, Sum>, {grid, dim3(width, stripes)}, device, a);
}

}  // namespace assay::ASSAY_CUDA_NAMESPACE
