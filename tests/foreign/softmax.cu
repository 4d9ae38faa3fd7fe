// Softmax of rows in CUDA as written elsewhere: raw pointers, launch chevrons, warp shuffles, and dynamic shared
// memory. softmax.yaml is its shim. Compiled by nvcc for a device, by assay_cuda_host_library() for the CPU.
// The macros plant one fault each.
#include <cuda_runtime.h>
#include <math.h>

namespace {

constexpr int kThreads = 128, kWarps = kThreads / 32;
#if defined(WRONG_MASK)
constexpr unsigned kAll = 0x0000ffffu;  // half of the lanes are missing from the mask
#else
constexpr unsigned kAll = 0xffffffffu;
#endif

struct Larger {
  __device__ float operator()(float x, float y) const { return x != x || x > y ? x : y; }  // keeps NaN
};
struct Sum {
  __device__ float operator()(float x, float y) const { return x + y; }
};

/// Returns the reduction in all threads.
template <class F>
__device__ float reduce(float x, F f, float* partial) {
  for (int step = 16; step > 0; step /= 2) x = f(x, __shfl_xor_sync(kAll, x, step));
#if !defined(NO_BARRIER)
  __syncthreads();  // all threads have read the results of the previous call
#endif
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = x;
  __syncthreads();
  x = partial[0];
  for (int w = 1; w < kWarps; ++w) x = f(x, partial[w]);
  return x;
}

template <int kStride>
__global__ void __launch_bounds__(kThreads)
    softmax_kernel(const float* x, long x_stride, float* y, long y_stride, int n) {
  extern __shared__ float row[];  // n exponentials
  __shared__ float partial[kWarps];
  const float* const in = x + blockIdx.x * x_stride;
  float* const out = y + blockIdx.x * y_stride;
  float most = -INFINITY;
  for (int j = threadIdx.x; j < n; j += kStride) most = Larger()(in[j], most);
  most = reduce(most, Larger(), partial);
  const float shift = most == -INFINITY ? 0.0f : most;  // a row of -inf has no terms: zeros
  float sum = 0.0f;
#if defined(HALF_A_BLOCK)
  for (int j = threadIdx.x; j < n; j += 2 * kStride) {
#else
  for (int j = threadIdx.x; j < n; j += kStride) {
#endif
    const float e = expf(in[j] - shift);
    sum += e;
#if defined(SHARED_UNWRITTEN)
    if (j < 1024)
#endif
      row[j] = e;
  }
  sum = reduce(sum, Sum(), partial);
#if defined(ROW_BEYOND)
  const int end = (n + 3) / 4 * 4;
#else
  const int end = n;
#endif
  for (int j = threadIdx.x; j < end; j += kStride) out[j] = sum == 0.0f ? 0.0f : row[j] / sum;
}

}  // namespace

/// y = softmax(x) along rows of n elements, with row strides x_stride and y_stride. Returns 0; 1 if the exponentials of
/// a row do not fit into the shared memory of a block; 2 if the launch failed.
extern "C" int softmax_rows(const float* x, long x_stride, float* y, long y_stride, int rows, int n,
                            cudaStream_t stream) {
  const size_t bytes = static_cast<size_t>(n + 4) * sizeof(float);
  if (bytes > 16 * 1024) return 1;
  if (rows > 0) softmax_kernel<kThreads><<<rows, kThreads, bytes, stream>>>(x, x_stride, y, y_stride, n);
  return cudaGetLastError() == cudaSuccess ? 0 : 2;
}
