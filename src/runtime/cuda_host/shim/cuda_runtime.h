// Replaces CUDA's cuda_runtime.h for .cu files compiled for the CPU (runtime/cuda_host/model.hpp): the device side of
// the language. Code that uses anything missing here does not compile for cuda-host.
#pragma once

#include <math.h>

#include <bit>
#include <climits>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <type_traits>

#include "cuda_runtime_api.h"
#include "runtime/cuda_host/model.hpp"

// Kernels are static to make their shared arrays static: the address sanitizer does not guard variables that the linker
// may merge with those of another file, as in templates.
#define __global__ __attribute__((unused)) static
#define __device__
#define __host__
#define __shared__ static
#define __constant__ static
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __grid_constant__
#define __managed__
#define __align__(n) __attribute__((aligned(n)))

namespace assay::cuda_host {

using Site = std::source_location;

/// Returns the value of lane `source`. Undefined, hence garbage, if the mask does not name `source`.
template <class T>
T shuffle(unsigned mask, T value, unsigned source, Site site) {
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

/// Stands where a file has inline PTX.
inline void inline_ptx(Site site = Site::current()) {
  fail("inline PTX",
       "cuda-host does not run inline PTX: put C++ beside it under #if !defined(__CUDACC__), or falsify on a device",
       site);
}

namespace toolkit {

#define ASSAY_VECTORS(T, name, align1, align2, align4)       \
  struct alignas(align1) name##1 {                           \
    T x;                                                     \
  };                                                         \
  struct alignas(align2) name##2 {                           \
    T x, y;                                                  \
  };                                                         \
  struct alignas(align4) name##4 {                           \
    T x, y, z, w;                                            \
  };                                                         \
  inline name##1 make_##name##1(T x) { return {x}; }         \
  inline name##2 make_##name##2(T x, T y) { return {x, y}; } \
  inline name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }
#define ASSAY_VECTOR3(T, name) \
  struct name##3 {             \
    T x, y, z;                 \
  };
ASSAY_VECTORS(signed char, char, 1, 2, 4)
ASSAY_VECTORS(unsigned char, uchar, 1, 2, 4)
ASSAY_VECTORS(short, short, 2, 4, 8)
ASSAY_VECTORS(unsigned short, ushort, 2, 4, 8)
ASSAY_VECTORS(int, int, 4, 8, 16)
ASSAY_VECTORS(unsigned, uint, 4, 8, 16)
ASSAY_VECTORS(long, long, 8, 16, 16)
ASSAY_VECTORS(unsigned long, ulong, 8, 16, 16)
ASSAY_VECTORS(long long, longlong, 8, 16, 16)
ASSAY_VECTORS(unsigned long long, ulonglong, 8, 16, 16)
ASSAY_VECTORS(float, float, 4, 8, 16)
ASSAY_VECTORS(double, double, 8, 16, 16)
ASSAY_VECTOR3(signed char, char)
ASSAY_VECTOR3(unsigned char, uchar)
ASSAY_VECTOR3(int, int)
ASSAY_VECTOR3(float, float)
ASSAY_VECTOR3(double, double)
#undef ASSAY_VECTORS
#undef ASSAY_VECTOR3
inline int3 make_int3(int x, int y, int z) { return {x, y, z}; }
inline uint3 make_uint3(unsigned x, unsigned y, unsigned z) { return {x, y, z}; }
inline float3 make_float3(float x, float y, float z) { return {x, y, z}; }
inline double3 make_double3(double x, double y, double z) { return {x, y, z}; }

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

// Every access is atomic, because threads of all blocks share one OS thread.
template <class T, class F>
ASSAY_UNTRACKED T atomically(T* address, F f) {
  shared_atomic(address, sizeof(T));
  const T old = *address;
  *address = f(old);
  return old;
}
#define ASSAY_ATOMIC(name, value)                                             \
  template <class T>                                                          \
  T name(T* address, std::type_identity_t<T> x) {                             \
    return atomically(address, [x](T old) { return static_cast<T>(value); }); \
  }                                                                           \
  template <class T>                                                          \
  T name##_block(T* address, std::type_identity_t<T> x) {                     \
    return name(address, x);                                                  \
  }
ASSAY_ATOMIC(atomicAdd, old + x)
ASSAY_ATOMIC(atomicSub, old - x)
ASSAY_ATOMIC(atomicMin, x < old ? x : old)
ASSAY_ATOMIC(atomicMax, old < x ? x : old)
ASSAY_ATOMIC(atomicAnd, old& x)
ASSAY_ATOMIC(atomicOr, old | x)
ASSAY_ATOMIC(atomicXor, old ^ x)
ASSAY_ATOMIC(atomicExch, ((void)old, x))
ASSAY_ATOMIC(atomicInc, old >= x ? T{0} : old + 1)
ASSAY_ATOMIC(atomicDec, old == 0 || old > x ? x : old - 1)
#undef ASSAY_ATOMIC
template <class T>
T atomicCAS(T* address, std::type_identity_t<T> expected, std::type_identity_t<T> x) {
  return atomically(address, [=](T old) { return old == expected ? x : old; });
}
// The model runs one thread at a time, and its memory is never stale.
inline void __threadfence() {}
inline void __threadfence_block() {}
inline void __threadfence_system() {}
inline void __nanosleep(unsigned) {}
[[noreturn]] inline void __trap(Site site = Site::current()) { fail("trap", "the kernel calls __trap()", site); }
inline long long clock64() {
  static long long ticks = 0;
  return ++ticks;
}

// Hints for caches.
#define ASSAY_LOAD(name)     \
  template <class T>         \
  T name(const T* address) { \
    return *address;         \
  }
#define ASSAY_STORE(name)                                \
  template <class T>                                     \
  void name(T* address, std::type_identity_t<T> value) { \
    *address = value;                                    \
  }
ASSAY_LOAD(__ldg)
ASSAY_LOAD(__ldca)
ASSAY_LOAD(__ldcg)
ASSAY_LOAD(__ldcs)
ASSAY_LOAD(__ldcv)
ASSAY_LOAD(__ldlu)
ASSAY_STORE(__stcg)
ASSAY_STORE(__stcs)
ASSAY_STORE(__stwb)
ASSAY_STORE(__stwt)
#undef ASSAY_LOAD
#undef ASSAY_STORE

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
inline int __float2int_rn(float x) { return static_cast<int>(std::nearbyint(x)); }
inline int __float2int_rz(float x) { return static_cast<int>(x); }
inline int __float2int_rd(float x) { return static_cast<int>(std::floor(x)); }
inline int __float2int_ru(float x) { return static_cast<int>(std::ceil(x)); }
inline float __int2float_rn(int x) { return static_cast<float>(x); }
inline float __uint2float_rn(unsigned x) { return static_cast<float>(x); }
inline int __clz(int x) { return std::countl_zero(static_cast<unsigned>(x)); }
inline int __clzll(long long x) { return std::countl_zero(static_cast<unsigned long long>(x)); }
inline int __ffsll(long long x) { return x == 0 ? 0 : std::countr_zero(static_cast<unsigned long long>(x)) + 1; }
inline int __popc(unsigned x) { return std::popcount(x); }
inline int __popcll(unsigned long long x) { return std::popcount(x); }
inline unsigned __brev(unsigned x) {
  unsigned result = 0;
  for (int bit = 0; bit < 32; ++bit) result |= (x >> bit & 1U) << (31 - bit);
  return result;
}
inline int __mul24(int x, int y) { return x * y; }
inline int __dp4a(int x, int y, int sum) {
  for (int byte = 0; byte < 32; byte += 8)
    sum += static_cast<signed char>(x >> byte) * static_cast<signed char>(y >> byte);
  return sum;
}
inline float __fadd_rn(float x, float y) { return x + y; }
inline float __fsub_rn(float x, float y) { return x - y; }
inline float __fmul_rn(float x, float y) { return x * y; }
inline float __fdiv_rn(float x, float y) { return x / y; }
inline float __frcp_rn(float x) { return 1.0f / x; }
inline float __fsqrt_rn(float x) { return std::sqrt(x); }
inline float __frsqrt_rn(float x) { return static_cast<float>(1.0 / std::sqrt(static_cast<double>(x))); }
inline float __fmaf_rn(float x, float y, float z) { return std::fmaf(x, y, z); }
inline float __saturatef(float x) { return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f; }
inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
inline double rsqrt(double x) { return 1.0 / std::sqrt(x); }
inline float rsqrt(float x) { return rsqrtf(x); }
inline float rhypotf(float x, float y) { return 1.0f / std::hypot(x, y); }
inline float normcdff(float x) { return 0.5f * std::erfc(-x * 0.70710678f); }
inline void sincospif(float x, float* sine, float* cosine) {
  *sine = static_cast<float>(std::sin(3.14159265358979323846 * x));
  *cosine = static_cast<float>(std::cos(3.14159265358979323846 * x));
}
inline float __fdividef(float x, float y) { return x / y; }

// As overloads, and no templates, which the C++ library's would be ambiguous with under `using namespace std`.
#define ASSAY_MIN_MAX(R, T, U)                                                                                        \
  constexpr R min(T x, U y) { return static_cast<R>(y) < static_cast<R>(x) ? static_cast<R>(y) : static_cast<R>(x); } \
  constexpr R max(T x, U y) { return static_cast<R>(x) < static_cast<R>(y) ? static_cast<R>(y) : static_cast<R>(x); }
#define ASSAY_MIN_MAX_OF(I, U) \
  ASSAY_MIN_MAX(I, I, I)       \
  ASSAY_MIN_MAX(U, U, U)       \
  ASSAY_MIN_MAX(U, I, U)       \
  ASSAY_MIN_MAX(U, U, I)
ASSAY_MIN_MAX_OF(int, unsigned)
ASSAY_MIN_MAX_OF(long, unsigned long)
ASSAY_MIN_MAX_OF(long long, unsigned long long)
#undef ASSAY_MIN_MAX_OF
#undef ASSAY_MIN_MAX
// A NaN loses to a number, as in fminf.
inline float min(float x, float y) { return std::fmin(x, y); }
inline float max(float x, float y) { return std::fmax(x, y); }
inline double min(double x, double y) { return std::fmin(x, y); }
inline double max(double x, double y) { return std::fmax(x, y); }
inline double min(float x, double y) { return std::fmin(static_cast<double>(x), y); }
inline double max(float x, double y) { return std::fmax(static_cast<double>(x), y); }
inline double min(double x, float y) { return std::fmin(x, static_cast<double>(y)); }
inline double max(double x, float y) { return std::fmax(x, static_cast<double>(y)); }

}  // namespace toolkit

}  // namespace assay::cuda_host

// Approximations of a device: here they are the C library's functions, which are more accurate. Global, because glibc
// declares the same names.
extern "C" {
inline float __expf(float x) noexcept { return std::exp(x); }
inline float __exp10f(float x) noexcept { return std::pow(10.0f, x); }
inline float __logf(float x) noexcept { return std::log(x); }
inline float __log2f(float x) noexcept { return std::log2(x); }
inline float __log10f(float x) noexcept { return std::log10(x); }
inline float __powf(float x, float y) noexcept { return std::pow(x, y); }
inline float __sinf(float x) noexcept { return std::sin(x); }
inline float __cosf(float x) noexcept { return std::cos(x); }
inline float __tanf(float x) noexcept { return std::tan(x); }
inline float __tanhf(float x) noexcept { return std::tanh(x); }
inline void __sincosf(float x, float* sine, float* cosine) noexcept {
  *sine = std::sin(x);
  *cosine = std::cos(x);
}
}

using namespace assay::cuda_host::toolkit;  // CUDA's names are global
