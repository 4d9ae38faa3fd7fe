// A header in the folder of tiles.cu, with what such headers hold: a check, a reduction by shared memory, a kernel.
#pragma once

#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>

#define WARP 32U

inline void check(cudaError_t error, const char* file, int line) {
  if (error == cudaSuccess) return;
  printf("%s:%d: %s\n", file, line, cudaGetErrorString(error));
  exit(EXIT_FAILURE);
}
#define CHECK(call) (check(call, __FILE__, __LINE__))

using Reduction = float (*)(float);

/// Returns the reduction over the block in all threads; once in a kernel for each `reduce_warp`, which has its own array.
template <Reduction reduce_warp>
__device__ float reduce_block(float x, float neutral) {
  __shared__ float partial[WARP];
  const unsigned lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
  x = reduce_warp(x);
  if (lane == 0) partial[warp] = x;
#if !defined(NO_BARRIER)
  __syncthreads();
#endif
  return reduce_warp(lane < blockDim.x / WARP ? partial[lane] : neutral);
}

template <class T>
__global__ void fill(T* out, T value, int n) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < static_cast<unsigned>(n)) out[i] = value;
}
