// Replaces CUDA's cuda_runtime.h for .cu files compiled for the CPU (runtime/cuda_host/model.hpp): the device side of
// the language. Code that uses anything missing here does not compile for cuda-host.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "cuda_runtime_api.h"
#include "runtime/cuda_host/model.hpp"

// Kernels are static to make their shared arrays static: the address sanitizer does not guard variables that the linker
// may merge with those of another file, as in templates.
#define __global__ static
#define __device__
#define __host__
#define __shared__ static
#define __constant__ static
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))

namespace assay::cuda_host {

using Site = std::source_location;

struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }

inline void __syncthreads(Site site = Site::current()) { barrier(site); }
/// Waits at a barrier. Returns whether any thread of the block gave a nonzero predicate.
inline int __syncthreads_or(int predicate, Site site = Site::current()) {
  static struct {
    std::uint64_t block = 0;
    bool any = false;
  } gathered;
  if (gathered.block != block_serial) gathered = {block_serial, false};
  if (predicate != 0) gathered.any = true;
  barrier(site);
  const bool any = gathered.any;
  barrier(site);
  gathered.any = false;
  barrier(site);  // before the next call gathers
  return any ? 1 : 0;
}
inline void __syncwarp(unsigned mask = 0xffffffffU, Site site = Site::current()) {
  together(
      mask, [](void* const*, unsigned) {}, nullptr, site);
}

/// Returns the value of lane `source`. Undefined, hence garbage, if the mask does not name `source`.
template <class T>
T shuffle(unsigned mask, T value, unsigned source, Site site) {
  static_assert(sizeof(T) <= 8);
  struct Operand {
    T value;
    unsigned source;
    T result;
  } operand{value, source, value};
  const Complete exchange = [](void* const* operands, unsigned named) {
    for (unsigned l = 0; l < warpSize; ++l) {
      if (operands[l] == nullptr) continue;
      Operand& self = *static_cast<Operand*>(operands[l]);
      if (named >> self.source & 1U) self.result = static_cast<Operand*>(operands[self.source])->value;
      else poison(&self.result, sizeof(T));
    }
  };
  together(mask, exchange, &operand, site);
  return operand.result;
}
template <class T>
T __shfl_sync(unsigned mask, T value, int source, int width = warpSize, Site site = Site::current()) {
  const unsigned w = static_cast<unsigned>(width);
  return shuffle(mask, value, (lane() & ~(w - 1)) + (static_cast<unsigned>(source) & (w - 1)), site);
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = warpSize, Site site = Site::current()) {
  const bool inside = (lane() & (static_cast<unsigned>(width) - 1)) >= delta;
  return shuffle(mask, value, inside ? lane() - delta : lane(), site);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = warpSize, Site site = Site::current()) {
  const bool inside = (lane() & (static_cast<unsigned>(width) - 1)) + delta < static_cast<unsigned>(width);
  return shuffle(mask, value, inside ? lane() + delta : lane(), site);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = warpSize, Site site = Site::current()) {
  const unsigned source = lane() ^ static_cast<unsigned>(lanes), w = static_cast<unsigned>(width);
  return shuffle(mask, value, source / w <= lane() / w ? source % warpSize : lane(), site);
}
/// Returns a word with bit l set if lane l, named by the mask, gives true.
inline unsigned __ballot_sync(unsigned mask, bool predicate, Site site = Site::current()) {
  struct Operand {
    bool predicate;
    unsigned result;
  } operand{predicate, 0};
  const Complete vote = [](void* const* operands, unsigned) {
    unsigned result = 0;
    for (unsigned l = 0; l < warpSize; ++l)
      if (operands[l] != nullptr && static_cast<Operand*>(operands[l])->predicate) result |= 1U << l;
    for (unsigned l = 0; l < warpSize; ++l)
      if (operands[l] != nullptr) static_cast<Operand*>(operands[l])->result = result;
  };
  together(mask, vote, &operand, site);
  return operand.result;
}
inline bool __any_sync(unsigned mask, bool p, Site site = Site::current()) { return __ballot_sync(mask, p, site) != 0; }
inline bool __all_sync(unsigned mask, bool p, Site site = Site::current()) {
  return __ballot_sync(mask, p, site) == mask;
}

/// Every access is atomic, because threads of all blocks share one OS thread.
template <class T>
T atomicAdd(T* address, T value) {
  const T old = *address;
  *address = old + value;
  return old;
}

template <class T>
T __ldg(const T* address) {
  return *address;
}
/// Returns the position of the lowest set bit, counted from 1; 0 for x = 0.
inline int __ffs(int x) { return x == 0 ? 0 : std::countr_zero(static_cast<unsigned>(x)) + 1; }
/// Returns a word whose byte n is the byte of y:x (eight bytes, lowest first) selected by nibble n of the selector.
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
  const std::uint64_t bytes = std::uint64_t{y} << 32 | x;
  unsigned result = 0;
  for (unsigned n = 0; n < 4; ++n)
    result |= static_cast<unsigned>(bytes >> 8 * (selector >> 4 * n & 7U) & 255U) << 8 * n;
  return result;
}
inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
inline int __float_as_int(float x) { return std::bit_cast<int>(x); }
inline float __uint_as_float(unsigned x) { return std::bit_cast<float>(x); }
inline float __int_as_float(int x) { return std::bit_cast<float>(x); }
inline float __fadd_rn(float x, float y) { return x + y; }
inline float __fmul_rn(float x, float y) { return x * y; }
inline float __fmaf_rn(float x, float y, float z) { return std::fmaf(x, y, z); }
inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }

template <class T>
constexpr T min(T x, T y) {
  return y < x ? y : x;
}
template <class T>
constexpr T max(T x, T y) {
  return x < y ? y : x;
}

}  // namespace assay::cuda_host

using namespace assay::cuda_host;  // CUDA's names are global
