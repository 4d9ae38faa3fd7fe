// y = A·x, from one thread a row to one block a row, and cuBLAS.
#include <algorithm>

#include "core/view.hpp"
#include "ops/gemv.hpp"
#include "runtime/cuda/launch.hpp"
#include "runtime/registry.hpp"
#if defined(__CUDACC__)
#include "kernels/cuda/cublas.hpp"
#endif

namespace assay::ASSAY_CUDA_NAMESPACE::of_gemv {
namespace {

/// y[i] = sum_p a[i,p] * x[p]. a (m,k): float32, rows dense, at i * a_ld + p; x (k) and y (m): any stride of at least
/// 1. y shares no memory with a or x. Offsets take 64 bits. Error at most k·u·sum_p |a[i,p]||x[p]| in any order.
struct MatrixVector {
  Index m, k;
  const float* a;
  Index a_ld;
  const float* x;
  Index x_step;
  float* y;
  Index y_step;
};

constexpr unsigned kAllLanes = 0xffffffffU;

/// Returns the sum over the lanes of a warp, in lane 0. All 32 lanes take part.
__device__ inline float warp_sum(float sum) {
#pragma unroll
  for (unsigned step = 16; step > 0; step /= 2) sum += __shfl_down_sync(kAllLanes, sum, step);
  return sum;
}

__device__ inline float partial_sum(const MatrixVector& v, Index row, Index first, Index step) {
  const float* const a = v.a + row * v.a_ld;
  float sum = 0.0f;
#pragma unroll 4
  for (Index p = first; p < v.k; p += step) sum += a[p] * v.x[p * v.x_step];
  return sum;
}

/// Each thread sums one row, p ascending.
__global__ void __launch_bounds__(256) thread_per_row_kernel(MatrixVector v) {
  const Index row = Index{blockIdx.x} * blockDim.x + threadIdx.x;
  if (row < v.m) v.y[row * v.y_step] = partial_sum(v, row, 0, 1);
}

/// Each warp sums one row: lane l takes p = l, l + 32, .., then the warp reduces by a tree over the lanes.
__global__ void __launch_bounds__(256) warp_per_row_kernel(MatrixVector v) {
  const Index row = (Index{blockIdx.x} * blockDim.x + threadIdx.x) / 32;
  if (row >= v.m) return;  // the whole warp
  const Index lane = threadIdx.x % 32;
  const float sum = warp_sum(partial_sum(v, row, lane, 32));
  if (lane == 0) v.y[row * v.y_step] = sum;
}

/// Each block sums one row: a tree over the lanes of each warp, then over the warps.
__global__ void __launch_bounds__(256) block_per_row_kernel(MatrixVector v) {
  ASSAY_SHARED(float, sums, [8]);
  const Index row = blockIdx.x;
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int warps = (static_cast<int>(blockDim.x) + 31) / 32;
  const float sum = warp_sum(partial_sum(v, row, threadIdx.x, blockDim.x));
  if (lane == 0) sums[warp] = sum;
  __syncthreads();
  if (warp > 0) return;
  const float total = warp_sum(lane < warps ? sums[lane] : 0.0f);
  if (lane == 0) v.y[row * v.y_step] = total;
}

void thread_per_row(const MatrixVector& v, Device& device) {
  launch(&thread_per_row_kernel, {dim3(blocks_for(v.m, 256)), dim3(256)}, device, v);
}

void warp_per_row(const MatrixVector& v, Device& device) {
  launch(&warp_per_row_kernel, {dim3(blocks_for(v.m, 8)), dim3(256)}, device, v);
}

/// Uses at most 256 threads, in whole warps: a partial warp could not take part in shuffles.
void block_per_row(const MatrixVector& v, Device& device) {
  const auto threads = static_cast<unsigned>(std::clamp<Index>((v.k + 31) / 32 * 32, 32, 256));
  launch(&block_per_row_kernel, {dim3(static_cast<unsigned>(v.m)), dim3(threads)}, device, v);
}

template <void (*run)(const MatrixVector&, Device&)>
void run_gemv(const ops::GemvArgs& args, Device& device) {
  const auto step = [](const auto& vector) { return vector.dim(0) > 1 ? vector.stride(0) : Index{1}; };
  const Index a_ld = args.m > 1 ? args.a.stride(0) : std::max<Index>(args.k, 1);
  if (args.m > 0)
    run({args.m, args.k, args.a.data(), a_ld, args.x.data(), step(args.x), args.y.data(), step(args.y)}, device);
}

/// Returns the registry entry; the caller adds the differences.
template <void (*run)(const MatrixVector&, Device&)>
Kernel gemv_kernel(std::string_view id, std::string_view summary) {
  return {.id = id, .summary = summary, .run = &run_typed<ops::GemvArgs, &run_gemv<run>>};
}

const KernelRegistration registrations[] = {
    KernelRegistration(gemv_kernel<&thread_per_row>("gemv/" ASSAY_CUDA_NAME "/thread_per_row", "one thread a row")),
    KernelRegistration(preferred(gemv_kernel<&warp_per_row>("gemv/" ASSAY_CUDA_NAME "/warp_per_row",
                                                            "one warp a row, lanes along it, summed by shuffles"))),
    KernelRegistration(gemv_kernel<&block_per_row>("gemv/" ASSAY_CUDA_NAME "/block_per_row",
                                                   "one block of up to 256 threads a row, summed by shuffles"))};

#if defined(__CUDACC__)
void cublas(const MatrixVector& v, Device& device) {
  cublas_sgemv(v.m, v.k, v.a, v.a_ld, v.x, v.x_step, v.y, v.y_step, device);
}
const KernelRegistration cublas_registration{as_peer(gemv_kernel<&cublas>("gemv/cuda/cublas", "cublasSgemv"))};
#endif

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_gemv
