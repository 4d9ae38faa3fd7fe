// Building blocks of kernels over rows: a warp or a block per row, four elements a thread at a time, and sums and
// maxima over the threads of a row, whose order depends on the row's length alone.
#pragma once

#include <algorithm>

#include "core/view.hpp"
#include "kernels/storage.hpp"
#include "runtime/cuda/launch.hpp"
#include "runtime/registry.hpp"
// After launch.hpp, which names the namespace.
#include "kernels/cuda/storage.cuh"

namespace assay::ASSAY_CUDA_NAMESPACE {

inline constexpr int kRowThreads = 256;  ///< per block
inline constexpr Index kWarpRow = 1024;  ///< rows of up to kWarpRow elements get a warp, longer ones a block

/// Four elements of 4 or 2 bytes, loaded and stored as one word of 16 or 8.
template <class S>
struct alignas(4 * sizeof(S)) Four {
  S at[4];
};

/// Loads elements j..j+3 of a row of n, with `beyond` past its end. `aligned`: rows start at multiples of 4 elements.
template <class S>
__device__ inline float4 load4(const S* row, Index j, Index n, bool aligned, float beyond = 0.0f) {
  if (aligned && j + 4 <= n) {
    const Four<S> v = *reinterpret_cast<const Four<S>*>(row + j);
    return make_float4(load(v.at[0]), load(v.at[1]), load(v.at[2]), load(v.at[3]));
  }
  return make_float4(j < n ? load(row[j]) : beyond, j + 1 < n ? load(row[j + 1]) : beyond,
                     j + 2 < n ? load(row[j + 2]) : beyond, j + 3 < n ? load(row[j + 3]) : beyond);
}

template <class S>
__device__ inline void store4(S* row, Index j, Index n, bool aligned, float4 v) {
  if (aligned && j + 4 <= n) {
    Four<S> out;
    store(out.at[0], v.x), store(out.at[1], v.y), store(out.at[2], v.z), store(out.at[3], v.w);
    *reinterpret_cast<Four<S>*>(row + j) = out;
    return;
  }
  if (j < n) store(row[j], v.x);
  if (j + 1 < n) store(row[j + 1], v.y);
  if (j + 2 < n) store(row[j + 2], v.z);
  if (j + 3 < n) store(row[j + 3], v.w);
}

/// Returns true if every row of a matrix (or the vector) starts at a multiple of 4 elements.
template <class S>
bool rows_aligned(const S* data, Index row_stride) {
  return reinterpret_cast<std::uintptr_t>(data) % (4 * sizeof(S)) == 0 && row_stride % 4 == 0;
}

struct Plus {
  __device__ float operator()(float a, float b) const { return a + b; }
};
/// Maximum of a and b that treats NaN by position: NaN if a is NaN, a if b is NaN.
struct Larger {
  __device__ float operator()(float a, float b) const { return a < b ? b : a; }
};

/// Returns the reduction over the `threads` threads of a row, in all of them. 32: a whole warp takes part. kRowThreads:
/// the whole block takes part, and `scratch` is shared memory for one float a warp.
template <int threads, class Operation>
__device__ inline float reduce_row(float value, float* scratch) {
  const Operation operation;
#pragma unroll
  for (int step = 16; step > 0; step /= 2) value = operation(value, __shfl_xor_sync(0xffffffffU, value, step));
  if constexpr (threads > 32) {
    const int warps = (static_cast<int>(blockDim.x) + 31) / 32;
    if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = value;
    __syncthreads();
    value = scratch[0];
    for (int w = 1; w < warps; ++w) value = operation(value, scratch[w]);
    __syncthreads();  // before the next reduction overwrites scratch
  }
  return value;
}

/// Starts kernel<32> with a warp per row or kernel<kRowThreads> with a block per row.
template <class Warp, class Block, class Args>
void launch_rows(Warp warp, Block block, Index rows, Index n, Device& device, const Args& args) {
  if (rows == 0) return;
  if (n <= kWarpRow) launch(warp, {dim3(blocks_for(rows, kRowThreads / 32)), dim3(kRowThreads)}, device, args);
  else launch(block, {dim3(static_cast<unsigned>(rows)), dim3(kRowThreads)}, device, args);
}

/// Returns the row of this thread, and the thread's place in the row.
template <int threads>
__device__ inline Index own_row() {
  return (Index{blockIdx.x} * blockDim.x + threadIdx.x) / (threads == 32 ? 32 : static_cast<int>(blockDim.x));
}
template <int threads>
__device__ inline int own_place() {
  return static_cast<int>(threadIdx.x) % (threads == 32 ? 32 : static_cast<int>(blockDim.x));
}
/// Threads per row.
template <int threads>
__device__ inline int row_threads() {
  return threads == 32 ? 32 : static_cast<int>(blockDim.x);
}

}  // namespace assay::ASSAY_CUDA_NAMESPACE
