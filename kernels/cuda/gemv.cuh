// y = A·x, from one thread a row to one block a row.
#pragma once

#include <algorithm>

#include "core/view.hpp"
#include "runtime/cuda/launch.hpp"
#include "runtime/registry.hpp"

namespace assay::ASSAY_CUDA_NAMESPACE {

/// y[i] = sum_p a[i,p] * x[p]. a (m,k): float32, rows dense, at i * a_ld + p; x (k) and y (m): any stride of at
/// least 1. y shares no memory with a or x. Offsets take 64 bits. Error at most k·u·sum_p |a[i,p]||x[p]| in every
/// order.
struct MatrixVector {
  Index m, k;
  const float* a;
  Index a_ld;
  const float* x;
  Index x_step;
  float* y;
  Index y_step;
};

/// What a kernel does wrong on purpose (falsify/mutants/cuda).
enum class GemvFault { none, mask_names_absent_lanes, half_the_lanes_lost, x_step_ignored, no_barrier, tail_dropped };

namespace gemv_detail {

constexpr unsigned kAllLanes = 0xffffffffU;

/// Sum over the lanes of a warp, in lane 0. All 32 lanes take part.
template <GemvFault fault>
__device__ inline float warp_sum(float sum) {
#pragma unroll
  for (unsigned step = fault == GemvFault::half_the_lanes_lost ? 8 : 16; step > 0; step /= 2)
    sum += __shfl_down_sync(kAllLanes, sum, step);
  return sum;
}

template <GemvFault fault>
__device__ inline float partial_sum(const MatrixVector& v, Index row, Index first, Index step) {
  const float* const a = v.a + row * v.a_ld;
  const Index x_step = fault == GemvFault::x_step_ignored ? 1 : v.x_step;
  const Index k = fault == GemvFault::tail_dropped ? v.k / 32 * 32 : v.k;
  float sum = 0.0f;
#pragma unroll 4
  for (Index p = first; p < k; p += step) sum += a[p] * v.x[p * x_step];
  return sum;
}

}  // namespace gemv_detail

/// Each thread sums one row, p ascending.
template <GemvFault fault>
__global__ void __launch_bounds__(256) thread_per_row_kernel(MatrixVector v) {
  const Index row = Index{blockIdx.x} * blockDim.x + threadIdx.x;
  if (row < v.m) v.y[row * v.y_step] = gemv_detail::partial_sum<fault>(v, row, 0, 1);
}

/// Each warp sums one row: lane l takes p = l, l + 32, ..; then a tree over the lanes.
template <GemvFault fault>
__global__ void __launch_bounds__(256) warp_per_row_kernel(MatrixVector v) {
  const Index row = (Index{blockIdx.x} * blockDim.x + threadIdx.x) / 32;
  if (row >= v.m) return;  // the whole warp
  const Index lane = threadIdx.x % 32;
  const float sum = gemv_detail::warp_sum<fault>(gemv_detail::partial_sum<fault>(v, row, lane, 32));
  if (lane == 0) v.y[row * v.y_step] = sum;
}

/// Each block sums one row: a tree over the lanes of each warp, then over the warps.
template <GemvFault fault>
__global__ void __launch_bounds__(256) block_per_row_kernel(MatrixVector v) {
  ASSAY_SHARED(float, sums, [8]);
  const Index row = blockIdx.x;
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int warps = (static_cast<int>(blockDim.x) + 31) / 32;
  const float sum = gemv_detail::warp_sum<fault>(gemv_detail::partial_sum<fault>(v, row, threadIdx.x, blockDim.x));
  if (lane == 0) sums[warp] = sum;
  if constexpr (fault != GemvFault::no_barrier) __syncthreads();
  if (warp > 0) return;
  const float total = gemv_detail::warp_sum<fault>(lane < warps ? sums[lane] : 0.0f);
  if (lane == 0) v.y[row * v.y_step] = total;
}

template <GemvFault fault = GemvFault::none>
void thread_per_row(const MatrixVector& v, Device& device) {
  launch(&thread_per_row_kernel<fault>, {dim3(blocks_for(v.m, 256)), dim3(256)}, device, v);
}

template <GemvFault fault = GemvFault::none>
void warp_per_row(const MatrixVector& v, Device& device) {
  launch(&warp_per_row_kernel<fault>, {dim3(blocks_for(v.m, 8)), dim3(256)}, device, v);
}

/// At most 256 threads, whole warps of them: a partial one could not take part in its shuffles.
template <GemvFault fault = GemvFault::none>
void block_per_row(const MatrixVector& v, Device& device) {
  const Index wanted = fault == GemvFault::mask_names_absent_lanes ? v.k : (v.k + 31) / 32 * 32;
  const auto threads =
      static_cast<unsigned>(std::clamp<Index>(wanted, fault == GemvFault::mask_names_absent_lanes ? 1 : 32, 256));
  launch(&block_per_row_kernel<fault>, {dim3(static_cast<unsigned>(v.m)), dim3(threads)}, device, v);
}

/// Args: GemvArgs.
template <class Args>
MatrixVector matrix_vector_of(const Args& args) {
  const auto step = [](const auto& vector) { return vector.dim(0) > 1 ? vector.stride(0) : Index{1}; };
  const Index a_ld = args.m > 1 ? args.a.stride(0) : std::max<Index>(args.k, 1);
  return {args.m, args.k, args.a.data(), a_ld, args.x.data(), step(args.x), args.y.data(), step(args.y)};
}

/// The registry's row; the caller adds what differs. Args: GemvArgs.
template <class Args, void (*run)(const MatrixVector&, Device&)>
Kernel gemv_kernel(std::string_view id, std::string_view source, std::string_view summary) {
  return {.op = "gemv",
          .id = id,
          .backend = kCudaBackend,
          .source = source,
          .summary = summary,
          .run = [](const Call& call, Device& device) {
            const MatrixVector v = matrix_vector_of(Args::unpack(call));
            if (v.m > 0) run(v, device);
          }};
}

}  // namespace assay::ASSAY_CUDA_NAMESPACE
