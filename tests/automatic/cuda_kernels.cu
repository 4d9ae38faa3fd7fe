#include "runtime/cuda/launch.hpp"
#include "tests/automatic/cuda_kernels.hpp"

namespace assay {

__global__ void add_one_kernel(float* x) { x[threadIdx.x] += 1.0F; }

__global__ void sum_up_kernel(volatile float* x, int n) {
  *x = 0;
#pragma unroll 1
  for (int i = 1; i <= n; ++i) *x = *x + static_cast<float>(i);
}

void add_one(float* x, Device& device) { launch(add_one_kernel, {.grid = dim3(1), .block = dim3(32)}, device, x); }
void sum_up(float* x, int n, Device& device) {
  launch(sum_up_kernel, {.grid = dim3(1), .block = dim3(1)}, device, x, n);
}

}  // namespace assay
