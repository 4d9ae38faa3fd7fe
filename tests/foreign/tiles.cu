// Kernels in the manner of whole CUDA files: cooperative groups, a header of the folder, cache hints, cuBLAS, bfloat16,
// launches that deduce template arguments, and a main(). tiles_*.yaml are their shims. The macros plant one fault each.
#include <assert.h>
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cublas_v2.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include "tiles.cuh"

namespace cg = cooperative_groups;

__device__ float lerp(float start, float end, float weight) { return fmaf(weight, end, fmaf(-weight, start, start)); }

__device__ float sum_of_warp(float x) {
  for (int offset = 16; offset > 0; offset /= 2) x += __shfl_xor_sync(0xFFFFFFFF, x, offset);
  return x;
}
__device__ float most_of_warp(float x) {
  for (int offset = 16; offset > 0; offset /= 2) {
    const float other = __shfl_xor_sync(0xFFFFFFFF, x, offset);
    x = other != other || other > x ? other : x;
  }
  return x;
}

/// A row per block, whose exponentials stay in shared memory.
__global__ void __launch_bounds__(128, 2) softmax_block(float* __restrict__ y, const float* __restrict__ x, int n) {
  extern __shared__ float row[];
#if defined(EXIT_EARLY)
  if (static_cast<int>(threadIdx.x) >= n) return;
#endif
  x += static_cast<size_t>(blockIdx.x) * n;
  y += static_cast<size_t>(blockIdx.x) * n;
  float most = -INFINITY;
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    const float v = __ldg(&x[min(n - 1, i + 0U)]);
    most = v != v || v > most ? v : most;
  }
  most = reduce_block<most_of_warp>(most, -INFINITY);
  const float shift = most == -INFINITY ? 0.0f : most;
  float sum = 0.0f;
  for (int i = threadIdx.x; i < n; i += blockDim.x) sum += row[i] = expf(__ldcs(x + i) - shift);
#if defined(BARRIER_IN_BRANCH)
  if (static_cast<int>(threadIdx.x) < n) __syncthreads();
#endif
  sum = reduce_block<sum_of_warp>(sum, 0.0f);
#if defined(NEIGHBOUR)  // another thread's element, as if threads of a warp ran in step
  for (int i = threadIdx.x; i < n; i += blockDim.x) row[i] = row[n - 1 - i];
#endif
  for (int i = threadIdx.x; i < n; i += blockDim.x) __stcs(y + i, sum == 0.0f ? 0.0f : row[i] / sum);
}

void softmax_by_blocks(float* y, const float* x, int rows, int n) {
  const size_t bytes = n * sizeof(float);
  softmax_block<<<rows, 128, bytes>>>(y, x, n);
  CHECK(cudaGetLastError());
}

struct __align__(8) SumMax {
  float most, sum;
};
__device__ __forceinline__ SumMax merge(SumMax a, SumMax b) {
  const float most = a.most != a.most || a.most > b.most ? a.most : b.most;
  if (most == -INFINITY) return {most, 0.0f};
  return {most, a.sum * expf(a.most - most) + b.sum * expf(b.most - most)};
}

/// A row per tile of 16 threads, online.
__global__ void softmax_tile(float* y, const float* x, int rows, int n) {
  const cg::thread_block block = cg::this_thread_block();
#if defined(WRONG_TILE)
  const cg::thread_block_tile<8> tile = cg::tiled_partition<8>(block);
  const int row = blockIdx.x * 8 + threadIdx.x / 16;
#else
  const cg::thread_block_tile<16> tile = cg::tiled_partition<16>(block);
  const int row = blockIdx.x * tile.meta_group_size() + tile.meta_group_rank();
#endif
  if (row >= rows) return;
#if defined(PTX)
  asm volatile("prefetch.global.L2 [%0];" ::"l"(x));
#endif
  x += static_cast<size_t>(row) * n;
  y += static_cast<size_t>(row) * n;
  SumMax all = {-INFINITY, 0.0f};
  for (int i = threadIdx.x % 16; i < n; i += 16) all = merge(all, {x[i], 1.0f});
  all = cg::reduce(tile, all, merge);
  __shared__ SumMax total[8];  // of a tile's row, read by other threads of that tile alone
  if (threadIdx.x % 16 == 15) total[threadIdx.x / 16] = all;
#if !defined(NO_SYNC_OF_TILE)
  tile.sync();
#endif
  all = total[threadIdx.x / 16];
  for (int i = threadIdx.x % 16; i < n; i += 16) y[i] = all.most == -INFINITY ? 0.0f : expf(x[i] - all.most) / all.sum;
}

void softmax_by_tiles(float* y, const float* x, int rows, int n) {
  softmax_tile<<<(rows + 7) / 8, 128>>>(y, x, rows, n);
  CHECK(cudaGetLastError());
}

template <class T>
__global__ void add(T* out, const T* a, const T* b, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
#if defined(ONE_SHORT)
  n -= n > 300;
#endif
  if (i < n) out[i] = static_cast<T>(static_cast<float>(a[i]) + static_cast<float>(b[i]));
}

// The launcher has its kernel's name, and the launch deduces the template's argument.
void add(__nv_bfloat16* out, const __nv_bfloat16* a, const __nv_bfloat16* b, int n, int threads) {
  add<<<(n + threads - 1) / threads, threads>>>(out, a, b, n);
}

void product(float* c, const float* a, const float* b, int m, int n, int k) {
  cublasHandle_t handle;
  cublasCreate(&handle);
  const float one = 1.0f, zero = 0.0f;
  fill<<<(m * n + 255) / 256, 256>>>(c, NAN, m * n);
  cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, n, m, k, &one, b, n, a, k, &zero, c, n);
  cublasDestroy(handle);
}
void product(float* c, const float* a, const float* b, int n) { product(c, a, b, n, n, n); }

int main() {
  float* device;
  CHECK(cudaMalloc(&device, 64));
  fill<<<1, 16>>>(device, 1.0f, 16);
  CHECK(cudaFree(device));
  printf("%f\n", lerp(0.0f, 1.0f, 0.5f));
  return 0;
}
