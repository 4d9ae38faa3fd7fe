// Rows in packs of 16 bytes: a thread loads a pack by one instruction and keeps it in four registers, as it is stored.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstring>

#include "kernels/cuda/rows.cuh"

namespace assay::ASSAY_CUDA_NAMESPACE {

/// Elements of a pack.
template <class S>
inline constexpr int kPack = 16 / static_cast<int>(sizeof(S));

template <class S>
struct Pack {
  unsigned word[4];
};

/// The elements of a pack in float32.
template <class S>
struct Elements {
  float at[kPack<S>];
};

/// Returns true if rows of n elements consist of whole packs at multiples of 16 bytes.
template <class S>
bool packed(const S* data, Index row_stride, Index n) {
  return reinterpret_cast<std::uintptr_t>(data) % 16 == 0 && row_stride % kPack<S> == 0 && n % kPack<S> == 0;
}

__device__ inline void widen_word(unsigned word, float* to, float /*storage*/) { to[0] = __uint_as_float(word); }
__device__ inline void widen_word(unsigned word, float* to, BFloat16) {
  to[0] = __uint_as_float(word << 16);
  to[1] = __uint_as_float(word & 0xffff0000U);
}
__device__ inline void widen_word(unsigned word, float* to, Half) {
  to[0] = load(Half{static_cast<std::uint16_t>(word)});
  to[1] = load(Half{static_cast<std::uint16_t>(word >> 16)});
}

/// Two elements of 16 bits are rounded by one instruction.
__device__ inline unsigned rounded_word(const float* from, float /*storage*/) { return __float_as_uint(from[0]); }
__device__ inline unsigned rounded_word(const float* from, BFloat16) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(from[0], from[1]);
  unsigned word;
  memcpy(&word, &pair, sizeof(word));
  return word;
}
__device__ inline unsigned rounded_word(const float* from, Half) {
  const __half2 pair = __floats2half2_rn(from[0], from[1]);
  unsigned word;
  memcpy(&word, &pair, sizeof(word));
  return word;
}

template <class S>
__device__ inline Elements<S> widened(const Pack<S>& pack) {
  Elements<S> v;
#pragma unroll
  for (int w = 0; w < 4; ++w) widen_word(pack.word[w], v.at + w * (kPack<S> / 4), S{});
  return v;
}

/// Returns elements j.. of a row of n, with `beyond` past its end. `whole`: the row is packed(). Passes by the first
/// cache: for what is read once.
template <bool whole, class S>
__device__ inline Pack<S> load_pack(const S* row, int j, int n, S beyond = S{}) {
  S v[kPack<S>];
#pragma unroll
  for (int e = 0; e < kPack<S>; ++e) v[e] = !whole && j + e < n ? row[j + e] : beyond;
  Pack<S> pack;
  memcpy(pack.word, v, sizeof(pack));
  if constexpr (whole) {
    if (j < n) {
      const uint4 loaded = __ldcg(reinterpret_cast<const uint4*>(row + j));
      pack = {loaded.x, loaded.y, loaded.z, loaded.w};
    }
  }
  return pack;
}

/// Stores elements j.. of a row of n as they are.
template <bool whole, class S>
__device__ inline void store_bits(S* row, int j, int n, const Pack<S>& pack) {
  if constexpr (whole) {
    if (j < n)
      __stwb(reinterpret_cast<uint4*>(row + j), make_uint4(pack.word[0], pack.word[1], pack.word[2], pack.word[3]));
  } else {
    S v[kPack<S>];
    memcpy(v, pack.word, sizeof(pack));
#pragma unroll
    for (int e = 0; e < kPack<S>; ++e)
      if (j + e < n) row[j + e] = v[e];
  }
}

/// Stores elements j.. of a row of n, rounded to S.
template <bool whole, class S>
__device__ inline void store_pack(S* row, int j, int n, const Elements<S>& v) {
  Pack<S> pack;
#pragma unroll
  for (int w = 0; w < 4; ++w) pack.word[w] = rounded_word(v.at + w * (kPack<S> / 4), S{});
  store_bits<whole>(row, j, n, pack);
}

/// Returns elements j.. of a float32 vector of n, as many as a pack of S has, with zeros past its end. For what all rows
/// share.
template <class S, bool whole>
__device__ inline Elements<S> load_floats(const float* vector, int j, int n) {
  Elements<S> v;
#pragma unroll
  for (int e = 0; e < kPack<S>; e += 4) {
    float4 four = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (!whole) four = load4(vector, j + e, n, false);
    else if (j < n) four = *reinterpret_cast<const float4*>(vector + j + e);
    v.at[e] = four.x, v.at[e + 1] = four.y, v.at[e + 2] = four.z, v.at[e + 3] = four.w;
  }
  return v;
}

template <class S, bool whole>
__device__ inline void store_floats(float* vector, int j, int n, const Elements<S>& v) {
#pragma unroll
  for (int e = 0; e < kPack<S>; e += 4)
    store4(vector, j + e, n, whole, make_float4(v.at[e], v.at[e + 1], v.at[e + 2], v.at[e + 3]));
}

/// The team that has a row, a warp or a whole block, and this thread's place in it. own_row() and its like divide.
template <int threads>
struct Team {
  Index number = threads == 32 ? Index{blockIdx.x} * (kRowThreads / 32) + threadIdx.x / 32 : Index{blockIdx.x};
  int place = static_cast<int>(threads == 32 ? threadIdx.x % 32 : threadIdx.x);
  int size = threads == 32 ? 32 : static_cast<int>(blockDim.x);
};

}  // namespace assay::ASSAY_CUDA_NAMESPACE
