// Device-side loads and stores by storage format: float, Half, BFloat16. Arithmetic is float32; a store rounds to
// nearest.
#pragma once

#include <cuda_runtime.h>

#include "core/half.hpp"
#if defined(__CUDACC__)
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#endif

namespace assay::ASSAY_CUDA_NAMESPACE {

__device__ inline float load(float x) { return x; }
__device__ inline void store(float& to, float x) { to = x; }

#if defined(__CUDACC__)
__device__ inline float load(Half x) { return __half2float(__ushort_as_half(x.bits)); }
__device__ inline float load(BFloat16 x) { return __uint_as_float(static_cast<unsigned>(x.bits) << 16); }
__device__ inline void store(Half& to, float x) { to.bits = __half_as_ushort(__float2half_rn(x)); }
__device__ inline void store(BFloat16& to, float x) { to.bits = __bfloat16_as_ushort(__float2bfloat16_rn(x)); }
#else
inline float load(Half x) { return widen(x); }
inline float load(BFloat16 x) { return widen(x); }
inline void store(Half& to, float x) { to = to_half(x); }
inline void store(BFloat16& to, float x) { to = to_bfloat16(x); }
#endif

}  // namespace assay::ASSAY_CUDA_NAMESPACE
