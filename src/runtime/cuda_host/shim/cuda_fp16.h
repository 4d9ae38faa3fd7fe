// Replaces CUDA's cuda_fp16.h (narrow.h).
#pragma once

#include "narrow.h"

namespace assay::cuda_host::toolkit {

using __half = Narrow<Half>;
using __half2 = NarrowPair<Half>;
using __half_raw = Raw<Half>;
using half = __half;
using half2 = __half2;

inline __half __float2half(float x) { return x; }
inline __half __float2half_rn(float x) { return x; }
inline __half __double2half(double x) { return x; }
inline __half __int2half_rn(int x) { return x; }
inline float __half2float(__half x) { return x; }
inline __half __ushort_as_half(unsigned short x) { return __half_raw{x}; }
inline unsigned short __half_as_ushort(__half x) { return x.bits; }
inline __half2 __halves2half2(__half x, __half y) { return {x, y}; }
inline __half2 __floats2half2_rn(float x, float y) { return {x, y}; }
inline __half2 __float22half2_rn(float2 a) { return {a.x, a.y}; }
inline __half2 __float2half2_rn(float x) { return {x, x}; }
inline __half2 __half2half2(__half x) { return {x, x}; }
inline float2 __half22float2(__half2 a) { return {a.x, a.y}; }
inline __half __low2half(__half2 a) { return a.x; }
inline __half __high2half(__half2 a) { return a.y; }
inline __half2 make_half2(__half x, __half y) { return {x, y}; }

}  // namespace assay::cuda_host::toolkit
