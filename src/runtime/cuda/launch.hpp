// Lets one .cu file compile twice: by nvcc for a device, and by the C++ compiler for cuda-host. A file that includes
// this and CUDA's own headers, and starts its kernels with assay::launch, runs on both. Inline PTX does not compile on
// cuda-host: it needs an #if on __CUDACC__ with an equivalent call in the other branch (kernels/cuda/mma.cuh).
#pragma once

#include <cuda_runtime.h>

#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "core/shape.hpp"
#include "runtime/device.hpp"

#if defined(__CUDACC__)
#include "runtime/cuda/cuda_device.hpp"
/// Back end in kernel ids, and namespaces of kernels and of this file: one program may contain both sides.
#define ASSAY_CUDA_NAME "cuda"
#define ASSAY_CUDA_NAMESPACE cuda_kernels
#define ASSAY_CUDA_LAUNCH cuda_launch
/// Declares a shared array: ASSAY_SHARED(float, tile, [16][17]) is `__shared__ float tile[16][17]`. On cuda-host this
/// also fills the array with garbage at the start of every block, unlike plain `__shared__`.
#define ASSAY_SHARED(type, name, extents) __shared__ type name extents
#else
#include "runtime/cuda_host/model.hpp"
#define ASSAY_CUDA_NAME "cuda-host"
#define ASSAY_CUDA_NAMESPACE cuda_host_kernels
#define ASSAY_CUDA_LAUNCH cuda_host_launch
#define ASSAY_SHARED(type, name, extents)               \
  __shared__ type name extents;                         \
  static ::assay::cuda_host::SharedArray name##_poison; \
  name##_poison.declare(name, sizeof(name))
#endif

namespace assay {
inline namespace ASSAY_CUDA_LAUNCH {

#if defined(__CUDACC__)
inline constexpr Backend kCudaBackend = Backend::cuda;
#else
inline constexpr Backend kCudaBackend = Backend::cuda_host;
#endif

struct LaunchShape {
  dim3 grid, block;
  std::size_t shared_bytes = 0;  ///< dynamic shared memory
};

/// Returns the number of blocks of `each` items that cover n items.
inline unsigned blocks_for(Index n, Index each) { return static_cast<unsigned>((n + each - 1) / each); }

/// Returns why a kernel that does not loop over blocks cannot cover `extent` items along y or z of its grid with `each`
/// items per block.
inline std::optional<std::string> refuse_grid(const std::string& of_what, Index extent, Index each) {
  if (extent <= 65535 * each) return std::nullopt;
  return of_what + " = " + std::to_string(extent) + " needs more than the 65535 blocks that a grid has along y and z";
}

#if defined(__CUDACC__)

/// Returns the dynamic shared memory of the block.
template <class T>
__device__ T* dynamic_shared() {
  extern __shared__ __align__(128) unsigned char assay_dynamic_shared[];
  return reinterpret_cast<T*>(assay_dynamic_shared);
}

namespace launch_detail {

template <class... P, class... A>
void enqueue(void (*kernel)(P...), const LaunchShape& shape, Device& device, bool overlapping, A&&... args) {
  auto& cuda = static_cast<CudaDevice&>(device);
  // Static shared memory counts to the 48 KiB that need no allowance, so every size is allowed.
  if (shape.shared_bytes > 0) cuda.allow_shared_bytes(reinterpret_cast<const void*>(kernel), shape.shared_bytes);
  std::tuple<P...> values(static_cast<P>(std::forward<A>(args))...);
  cudaLaunchAttribute early{};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = shape.grid;
  config.blockDim = shape.block;
  config.dynamicSmemBytes = shape.shared_bytes;
  config.stream = cuda.stream();
  config.attrs = &early;
  config.numAttrs = overlapping ? 1 : 0;
  std::apply(
      [&](P&... each) {
        void* pointers[] = {static_cast<void*>(&each)...};
        cuda.launch(config, reinterpret_cast<const void*>(kernel), pointers);
      },
      values);
}

}  // namespace launch_detail

/// Enqueues kernel(args...) on the device's stream; inside Device::prepare only loads its code. Throws Unavailable if
/// the device has too little shared memory, DeviceError if the launch fails. Device::synchronize() reports failures of
/// the running kernel.
template <class... P, class... A>
void launch(void (*kernel)(P...), const LaunchShape& shape, Device& device, A&&... args) {
  launch_detail::enqueue(kernel, shape, device, false, std::forward<A>(args)...);
}

/// Like launch(), for a kernel that calls let_next_begin() and await_previous(): it may begin before the previous
/// kernel on the stream has ended if that one is of this kind, too (programmatic dependent launch, compute capability
/// 9.0 and later). Every block of such a kernel calls both. Before await_previous() it writes nothing, and reads only
/// memory that no kernel of this kind writes. So a kernel has ended only if all before it have, and memory may serve
/// the next kernel as if they ran one by one.
template <class... P, class... A>
void launch_overlapping(void (*kernel)(P...), const LaunchShape& shape, Device& device, A&&... args) {
  launch_detail::enqueue(kernel, shape, device, true, std::forward<A>(args)...);
}

/// Returns the largest shared memory of a block on the device.
inline std::size_t most_shared_bytes(Device& device) { return static_cast<CudaDevice&>(device).most_shared_bytes(); }

/// Allows blocks of the next kernel to start as resources permit, once every block of this one has called it.
__device__ inline void let_next_begin() {
#if __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
#endif
}

/// Waits until the kernels before this one have ended and their results are visible.
__device__ inline void await_previous() {
#if __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
#endif
}

/// Brings the 128 bytes around an address of global memory to the cache that all multiprocessors share. Not a read:
/// allowed before await_previous(), whoever writes there.
__device__ inline void prefetch(const void* address) { asm volatile("prefetch.global.L2 [%0];" ::"l"(address)); }

#else

template <class T>
T* dynamic_shared() {
  return static_cast<T*>(::assay::cuda_host::dynamic_shared());
}

/// Runs kernel(args...) on the CPU to completion.
template <class... P, class... A>
void launch(void (*kernel)(P...), const LaunchShape& shape, Device&, A&&... args) {
  ::assay::cuda_host::run_kernel(kernel, shape.grid, shape.block, shape.shared_bytes, std::forward<A>(args)...);
}

template <class... P, class... A>
void launch_overlapping(void (*kernel)(P...), const LaunchShape& shape, Device& device, A&&... args) {
  launch(kernel, shape, device, std::forward<A>(args)...);
}

inline std::size_t most_shared_bytes(Device&) { return ::assay::cuda_host::kMaxSharedBytes; }

inline void let_next_begin() {}
inline void await_previous() {}
inline void prefetch(const void*) {}

#endif

}  // namespace ASSAY_CUDA_LAUNCH
}  // namespace assay
