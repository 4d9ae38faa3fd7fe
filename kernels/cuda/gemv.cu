// y = A·x, from one thread a row to one block a row, and cuBLAS.
#include <algorithm>

#include "core/view.hpp"
#include "ops/gemv.hpp"
#include "runtime/cuda/launch.hpp"
#include "runtime/registry.hpp"
// After launch.hpp, which names the namespace.
#include "kernels/cuda/storage.cuh"
#if defined(__CUDACC__)
#include "kernels/cuda/cublas.hpp"
#endif

namespace assay::ASSAY_CUDA_NAMESPACE::of_gemv {
namespace {

/// y[i] = sum_p a[i,p] * x[p]. a (m,k): S, rows dense, at i * a_ld + p; x (k) and y (m): S, any stride of at least 1. y
/// shares no memory with a or x. Offsets take 64 bits. Sums are float32, and rounded once to S. Error at most
/// k·u·sum_p |a[i,p]||x[p]| in any order, and half a unit of S.
template <class S>
struct MatrixVector {
  Index m, k;
  const S* a;
  Index a_ld;
  const S* x;
  Index x_step;
  S* y;
  Index y_step;
};

constexpr unsigned kAllLanes = 0xffffffffU;

/// Returns the sum over the lanes of a warp, in lane 0. All 32 lanes take part.
__device__ inline float warp_sum(float sum) {
#pragma unroll
  for (unsigned step = 16; step > 0; step /= 2) sum += __shfl_down_sync(kAllLanes, sum, step);
  return sum;
}

template <class S>
__device__ inline float partial_sum(const MatrixVector<S>& v, Index row, Index first, Index step) {
  const S* const a = v.a + row * v.a_ld;
  float sum = 0.0f;
#pragma unroll 4
  for (Index p = first; p < v.k; p += step) sum += load(a[p]) * load(v.x[p * v.x_step]);
  return sum;
}

/// Elements that a lane loads as one word: 16 bytes of a 16-bit format.
template <class S>
constexpr int kWord = sizeof(S) == 2 ? 8 : 1;

/// Eight elements of 16 bits.
template <class S>
struct alignas(16) Eight {
  S at[8];
};

/// Loads elements p..p+7 of a vector of n, with zeros past its end. `aligned`: it starts at a multiple of 16 bytes, and
/// its step is 1.
template <class S>
__device__ inline Eight<S> load8(const S* vector, Index step, Index p, Index n, bool aligned) {
  if (aligned && p + 8 <= n) return *reinterpret_cast<const Eight<S>*>(vector + p);
  Eight<S> v;
#pragma unroll
  for (int i = 0; i < 8; ++i) v.at[i] = p + i < n ? vector[(p + i) * step] : S{};
  return v;
}

__device__ inline bool starts_at_16_bytes(const void* vector) {
  return reinterpret_cast<std::uintptr_t>(vector) % 16 == 0;
}

/// Like partial_sum(), in words: takes the terms of words first, first + step, ..; their order does not depend on
/// alignment.
template <class S>
__device__ inline float partial_sum_of_words(const MatrixVector<S>& v, Index row, Index first, Index step) {
  if constexpr (kWord<S> == 1) return partial_sum(v, row, first, step);
  else {
    const S* const a = v.a + row * v.a_ld;
    const bool a_aligned = starts_at_16_bytes(a), x_aligned = v.x_step == 1 && starts_at_16_bytes(v.x);
    float sum = 0.0f;
#pragma unroll 4
    for (Index p = 8 * first; p < v.k; p += 8 * step) {
      const Eight<S> left = load8(a, 1, p, v.k, a_aligned), right = load8(v.x, v.x_step, p, v.k, x_aligned);
#pragma unroll
      for (int i = 0; i < 8; ++i) sum += load(left.at[i]) * load(right.at[i]);
    }
    return sum;
  }
}

/// Each thread sums one row, p ascending.
template <class S>
__global__ void __launch_bounds__(256) thread_per_row_kernel(MatrixVector<S> v) {
  const Index row = Index{blockIdx.x} * blockDim.x + threadIdx.x;
  if (row < v.m) store(v.y[row * v.y_step], partial_sum(v, row, 0, 1));
}

/// Prefetches a lane's first words of a row while the previous kernel ends.
template <class S>
__device__ inline void prefetch_words(const MatrixVector<S>& v, Index row, Index lane) {
  constexpr int kWords = 4;
#pragma unroll
  for (int i = 0; i < kWords; ++i)
    if (const Index p = kWord<S> * (lane + 32 * i); p < v.k) prefetch(v.a + row * v.a_ld + p);
}

/// Each warp sums one row: lane l takes words l, l + 32, .., then the warp reduces by a tree over the lanes.
template <class S>
__global__ void __launch_bounds__(256) warp_per_row_kernel(MatrixVector<S> v) {
  const Index row = (Index{blockIdx.x} * blockDim.x + threadIdx.x) / 32;
  const Index lane = threadIdx.x % 32;
  let_next_begin();
  if (row < v.m) prefetch_words(v, row, lane);
  await_previous();
  if (row >= v.m) return;  // the whole warp
  const float sum = warp_sum(partial_sum_of_words(v, row, lane, 32));
  if (lane == 0) store(v.y[row * v.y_step], sum);
}

/// Each block sums one row: a tree over the lanes of each warp, then over the warps.
template <class S>
__global__ void __launch_bounds__(256) block_per_row_kernel(MatrixVector<S> v) {
  ASSAY_SHARED(float, sums, [8]);
  const Index row = blockIdx.x;
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int warps = (static_cast<int>(blockDim.x) + 31) / 32;
  const float sum = warp_sum(partial_sum_of_words(v, row, threadIdx.x, blockDim.x));
  if (lane == 0) sums[warp] = sum;
  __syncthreads();
  if (warp > 0) return;
  const float total = warp_sum(lane < warps ? sums[lane] : 0.0f);
  if (lane == 0) store(v.y[row * v.y_step], total);
}

template <class S>
void thread_per_row(const MatrixVector<S>& v, Device& device) {
  launch(&thread_per_row_kernel<S>, {dim3(blocks_for(v.m, 256)), dim3(256)}, device, v);
}

template <class S>
void warp_per_row(const MatrixVector<S>& v, Device& device) {
  launch_overlapping(&warp_per_row_kernel<S>, {dim3(blocks_for(v.m, 8)), dim3(256)}, device, v);
}

/// Uses at most 256 threads, in whole warps: a partial warp could not take part in shuffles.
template <class S>
void block_per_row(const MatrixVector<S>& v, Device& device) {
  const Index words = (v.k + kWord<S> - 1) / kWord<S>;
  const auto threads = static_cast<unsigned>(std::clamp<Index>((words + 31) / 32 * 32, 32, 256));
  launch(&block_per_row_kernel<S>, {dim3(static_cast<unsigned>(v.m)), dim3(threads)}, device, v);
}

template <class S, void (*run)(const MatrixVector<S>&, Device&)>
void run_gemv(const ops::GemvArgs& args, Device& device) {
  const auto step = [](const auto& vector) { return vector.dim(0) > 1 ? vector.stride(0) : Index{1}; };
  const Index a_ld = args.m > 1 ? args.a.stride(0) : std::max<Index>(args.k, 1);
  if (args.m > 0)
    run({args.m, args.k, static_cast<const S*>(args.a.data()), a_ld, static_cast<const S*>(args.x.data()), step(args.x),
         static_cast<S*>(args.y.data()), step(args.y)},
        device);
}

/// Returns the registry entry; the caller adds the differences.
template <class S, void (*run)(const MatrixVector<S>&, Device&)>
Kernel gemv_kernel(std::string_view id, std::string_view summary) {
  return {.id = id, .storage = dtype_of<S>, .summary = summary, .run = &run_typed<ops::GemvArgs, &run_gemv<S, run>>};
}
template <class S>
KernelRegistration add_thread_per_row(std::string_view id) {
  return KernelRegistration(gemv_kernel<S, &thread_per_row<S>>(id, "one thread a row"));
}
template <class S>
KernelRegistration add_warp_per_row(std::string_view id) {
  return KernelRegistration(preferred(
      gemv_kernel<S, &warp_per_row<S>>(id, kWord<S> == 1 ? "one warp a row, lanes along it, summed by shuffles"
                                                         : "one warp a row, 16 bytes a lane, summed by shuffles")));
}
template <class S>
KernelRegistration add_block_per_row(std::string_view id) {
  return KernelRegistration(gemv_kernel<S, &block_per_row<S>>(
      id, kWord<S> == 1 ? "one block of up to 256 threads a row, summed by shuffles"
                        : "one block of up to 256 threads a row, 16 bytes a thread, summed by shuffles"));
}

const KernelRegistration registrations[] = {
    add_thread_per_row<float>("gemv/" ASSAY_CUDA_NAME "/thread_per_row"),
    add_thread_per_row<Half>("gemv/" ASSAY_CUDA_NAME "/thread_per_row_f16"),
    add_thread_per_row<BFloat16>("gemv/" ASSAY_CUDA_NAME "/thread_per_row_bf16"),
    add_warp_per_row<float>("gemv/" ASSAY_CUDA_NAME "/warp_per_row"),
    add_warp_per_row<Half>("gemv/" ASSAY_CUDA_NAME "/warp_per_row_f16"),
    add_warp_per_row<BFloat16>("gemv/" ASSAY_CUDA_NAME "/warp_per_row_bf16"),
    add_block_per_row<float>("gemv/" ASSAY_CUDA_NAME "/block_per_row"),
    add_block_per_row<Half>("gemv/" ASSAY_CUDA_NAME "/block_per_row_f16"),
    add_block_per_row<BFloat16>("gemv/" ASSAY_CUDA_NAME "/block_per_row_bf16")};

#if defined(__CUDACC__)
void cublas(const MatrixVector<float>& v, Device& device) {
  cublas_sgemv(v.m, v.k, v.a, v.a_ld, v.x, v.x_step, v.y, v.y_step, device);
}
const KernelRegistration cublas_registration{as_peer(gemv_kernel<float, &cublas>("gemv/cuda/cublas", "cublasSgemv"))};

/// x and y as matrices of one column, whose rows are a step apart.
template <class S>
void cublas_ex(const MatrixVector<S>& v, Device& device) {
  cublas_gemm_ex(
      ProductOf<S>{static_cast<int>(v.m), static_cast<int>(v.k), 1, v.a, v.x, v.y, v.a_ld, v.x_step, v.y_step}, false,
      false, device);
}
template <class S>
KernelRegistration add_cublas_ex(std::string_view id) {
  return KernelRegistration(as_peer(declaring(mma_arithmetic<S>(), gemv_kernel<S, &cublas_ex<S>>(id, kCublasEx))));
}
const KernelRegistration cublas_ex_registrations[] = {add_cublas_ex<Half>("gemv/cuda/cublas_f16"),
                                                      add_cublas_ex<BFloat16>("gemv/cuda/cublas_bf16")};
#endif

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_gemv
