// Replaces the host side of CUDA's runtime for .cu files compiled for the CPU: launches, memory and errors, as far as
// foreign kernels need them (ci/cmake/AssayCudaHost.cmake). Streams do nothing: a launch has ended when it returns.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "runtime/cuda_host/model.hpp"

namespace assay::cuda_host {

enum cudaError_t { cudaSuccess = 0, cudaErrorMemoryAllocation = 2 };
enum cudaMemcpyKind {
  cudaMemcpyHostToHost,
  cudaMemcpyHostToDevice,
  cudaMemcpyDeviceToHost,
  cudaMemcpyDeviceToDevice,
  cudaMemcpyDefault
};
enum cudaFuncAttribute {
  cudaFuncAttributeMaxDynamicSharedMemorySize = 8,
  cudaFuncAttributePreferredSharedMemoryCarveout = 9
};
using cudaStream_t = struct CUstream_st*;
struct cudaLaunchAttribute;
struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  std::size_t dynamicSmemBytes = 0;
  cudaStream_t stream = nullptr;
  cudaLaunchAttribute* attrs = nullptr;
  unsigned numAttrs = 0;
};

/// Runs kernel(args...) on the CPU to completion. Throws as run() does.
template <class... P, class... A>
void run_kernel(void (*kernel)(P...), dim3 grid, dim3 block, std::size_t shared_bytes, A&&... args) {
  auto bound = [&] { kernel(static_cast<P>(args)...); };
  run({.blocks = grid,
       .threads = block,
       .shared_bytes = shared_bytes,
       .thread = [](void* f) { (*static_cast<decltype(bound)*>(f))(); },
       .kernel = &bound});
}

/// Implements kernel<<<grid, block, shared_bytes, stream>>>(args...), rewritten as chevrons(...)(kernel)(args...).
inline auto chevrons(dim3 grid, dim3 block, std::size_t shared_bytes = 0, cudaStream_t = nullptr) {
  return [=]<class... P>(void (*kernel)(P...)) {
    return [=](P... args) { run_kernel(kernel, grid, block, shared_bytes, args...); };
  };
}

template <class... P, class... A>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(P...), A&&... args) {
  run_kernel(kernel, config->gridDim, config->blockDim, config->dynamicSmemBytes, std::forward<A>(args)...);
  return cudaSuccess;
}

// Errors are thrown, so these never report one.
inline cudaError_t cudaGetLastError() { return cudaSuccess; }
inline cudaError_t cudaPeekAtLastError() { return cudaSuccess; }
inline const char* cudaGetErrorString(cudaError_t error) { return error == cudaSuccess ? "no error" : "out of memory"; }
inline const char* cudaGetErrorName(cudaError_t error) {
  return error == cudaSuccess ? "cudaSuccess" : "cudaErrorMemoryAllocation";
}
inline cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
inline cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
template <class F>
cudaError_t cudaFuncSetAttribute(F*, cudaFuncAttribute, int) {
  return cudaSuccess;
}

/// Device memory is host memory, filled with garbage.
template <class T>
cudaError_t cudaMalloc(T** memory, std::size_t bytes) {
  *memory = static_cast<T*>(std::malloc(bytes));
  if (*memory == nullptr && bytes > 0) return cudaErrorMemoryAllocation;
  poison(*memory, bytes / 4 * 4);
  return cudaSuccess;
}
inline cudaError_t cudaFree(void* memory) {
  std::free(memory);
  return cudaSuccess;
}
template <class T>
cudaError_t cudaMallocAsync(T** memory, std::size_t bytes, cudaStream_t) {
  return cudaMalloc(memory, bytes);
}
inline cudaError_t cudaFreeAsync(void* memory, cudaStream_t) { return cudaFree(memory); }
inline cudaError_t cudaMemset(void* memory, int value, std::size_t bytes) {
  std::memset(memory, value, bytes);
  return cudaSuccess;
}
inline cudaError_t cudaMemsetAsync(void* memory, int value, std::size_t bytes, cudaStream_t = nullptr) {
  return cudaMemset(memory, value, bytes);
}
inline cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind) {
  std::memcpy(to, from, bytes);
  return cudaSuccess;
}
inline cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                                   cudaStream_t = nullptr) {
  return cudaMemcpy(to, from, bytes, kind);
}
template <class T>
cudaError_t cudaMemcpyToSymbol(T& symbol, const void* from, std::size_t bytes) {
  std::memcpy(&symbol, from, bytes);
  return cudaSuccess;
}

}  // namespace assay::cuda_host
