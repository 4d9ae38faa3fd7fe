// Values encoded in Q4_K super-blocks.
#pragma once

#include <algorithm>
#include <cfloat>
#include <complex>

#include "core/bounded.hpp"
#include "core/dual.hpp"
#include "core/half.hpp"
#include "core/view.hpp"

namespace assay::reference {

// The codec computes in float for every number type.
template <class T>
float q4_k_single(const T& x) {
  return static_cast<float>(x);
}
inline float q4_k_single(const Bounded& x) { return static_cast<float>(x.value); }
template <class T>
float q4_k_single(const Dual<T>& x) {
  return q4_k_single(x.value);
}
template <class T>
float q4_k_single(const std::complex<T>& x) {
  return q4_k_single(x.real());
}

/// Returns the smallest binary16 h >= 0 with factor h >= reach, or infinity. Positive halves are ordered like their
/// bits.
inline Half q4_k_smallest_half(float factor, float reach) {
  unsigned least = 0, most = 0x7c00;
  while (least < most) {
    const unsigned middle = (least + most) / 2;
    if (factor * widen(Half{static_cast<std::uint16_t>(middle)}) >= reach) most = middle;
    else least = middle + 1;
  }
  return {static_cast<std::uint16_t>(most)};
}

/// Returns the smallest s with s step >= reach.
inline unsigned q4_k_smallest_code(float step, float reach) {
  unsigned s = 0;
  while (static_cast<float>(s) * step < reach) ++s;
  return s;
}

/// Encodes one super-block into bytes that were 0.
inline void q4_k_encode(const float (&x)[256], unsigned (&bytes)[144]) {
  const auto undefined = [&] { bytes[0] = 0, bytes[1] = 0x7e; };
  for (const float value : x)
    if (!(std::fabs(value) <= FLT_MAX)) return undefined();
  float lowest[8], reach[8], minimum[8];
  unsigned scale[8], offset[8], code[256] = {};
  for (Index b = 0; b < 8; ++b) lowest[b] = std::min(0.0F, *std::min_element(x + 32 * b, x + 32 * b + 32));
  const Half dmin = q4_k_smallest_half(63, -*std::min_element(lowest, lowest + 8));
  if (dmin.bits == 0x7c00) return undefined();
  for (Index b = 0; b < 8; ++b) {
    offset[b] = q4_k_smallest_code(widen(dmin), -lowest[b]);
    minimum[b] = widen(dmin) * static_cast<float>(offset[b]);
    reach[b] = *std::max_element(x + 32 * b, x + 32 * b + 32) + minimum[b];
  }
  const Half d = q4_k_smallest_half(15 * 63, *std::max_element(reach, reach + 8));
  if (d.bits == 0x7c00) return undefined();
  for (Index b = 0; b < 8; ++b) {
    scale[b] = q4_k_smallest_code(15 * widen(d), reach[b]);
    const float step = widen(d) * static_cast<float>(scale[b]);
    for (Index i = 32 * b; i < 32 * b + 32; ++i)
      while (code[i] < 15 && static_cast<float>(2 * code[i] + 1) * step < 2 * (x[i] + minimum[b])) ++code[i];
  }
  bytes[0] = d.bits & 255U, bytes[1] = d.bits >> 8U, bytes[2] = dmin.bits & 255U, bytes[3] = dmin.bits >> 8U;
  for (Index b = 0; b < 4; ++b) {
    bytes[4 + b] = scale[b] | scale[b + 4] >> 4U << 6U;
    bytes[8 + b] = offset[b] | offset[b + 4] >> 4U << 6U;
    bytes[12 + b] = (scale[b + 4] & 15U) | (offset[b + 4] & 15U) << 4U;
  }
  for (Index i = 0; i < 128; ++i) bytes[16 + i] = code[i / 32 * 64 + i % 32] | code[i / 32 * 64 + 32 + i % 32] << 4U;
}

/// Encodes x [rows, k] as blocks [rows, ceil(k / 256) 144] by the contract's equations and pins, in float. Subnormal x
/// count as 0; rows are padded with their last value. O(rows k).
template <class T>
void q4_k_quantize(View<const T> x, View<T> blocks) {
  for (Index i = 0; i < x.dim(0); ++i)
    for (Index first = 0; first < x.dim(1); first += 256) {
      float values[256];
      for (Index p = 0; p < 256; ++p) {
        const float v = q4_k_single(x(i, std::min(first + p, x.dim(1) - 1)));
        values[p] = std::fabs(v) < FLT_MIN ? 0.0F : v;
      }
      unsigned bytes[144] = {};
      q4_k_encode(values, bytes);
      for (Index n = 0; n < 144; ++n) blocks(i, first / 256 * 144 + n) = T(static_cast<double>(bytes[n]));
    }
}

}  // namespace assay::reference
