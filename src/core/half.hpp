// 16-bit storage types: IEEE 754 binary16 and bfloat16. They are stored and converted, never used for arithmetic.
#pragma once

#include <bit>
#include <cstdint>

#include "core/dtype.hpp"

namespace assay {

/// IEEE 754 binary16: 11 significant bits, largest 65504, smallest subnormal 2^-24.
struct Half {
  std::uint16_t bits = 0;
};

/// The upper half of a float: 8 significant bits and float's range.
struct BFloat16 {
  std::uint16_t bits = 0;
};

/// Exact; a NaN keeps its payload.
constexpr float widen(BFloat16 x) { return std::bit_cast<float>(static_cast<std::uint32_t>(x.bits) << 16); }

/// Exact, subnormals included; a NaN keeps its payload.
constexpr float widen(Half x) {
  const std::uint32_t sign = static_cast<std::uint32_t>(x.bits & 0x8000u) << 16;
  const std::uint32_t exponent = (x.bits >> 10) & 0x1fu, fraction = x.bits & 0x3ffu;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000u | fraction << 13);
  if (exponent == 0) {  // zero or subnormal: fraction * 2^-24
    const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
    return sign ? -magnitude : magnitude;
  }
  return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
}

/// Rounds to nearest, ties to even. NaN stays NaN (quiet, upper payload bits kept).
constexpr BFloat16 to_bfloat16(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return {static_cast<std::uint16_t>(bits >> 16 | 0x40u)};
  return {static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16)};
}

/// Rounds to nearest, ties to even. From 65520 the result is infinite; subnormals are kept; NaN stays NaN.
constexpr Half to_half(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000u);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  const auto with_sign = [sign](std::uint32_t half) { return Half{static_cast<std::uint16_t>(sign | half)}; };
  if (magnitude > 0x7f800000u) return with_sign(0x7e00u | (magnitude >> 13 & 0x3ffu));
  if (magnitude >= 0x477ff000u) return with_sign(0x7c00u);  // 65520 and more
  if (magnitude >= 0x38800000u)                             // normal: 2^-14 and more
    return with_sign((magnitude - 0x38000000u + 0xfffu + (magnitude >> 13 & 1u)) >> 13);
  if (magnitude < 0x33000000u) return with_sign(0);  // below 2^-25
  const std::uint32_t shift = 126 - (magnitude >> 23), fraction = (magnitude & 0x7fffffu) | 0x800000u;
  const std::uint32_t kept = fraction >> shift, rest = fraction & ((1u << shift) - 1), tie = 1u << (shift - 1);
  return with_sign(kept + (rest > tie || (rest == tie && (kept & 1u)) ? 1u : 0u));
}

/// Returns x as stored in a tensor of this floating type.
constexpr float stored(DType dtype, float x) {
  switch (dtype) {
    case DType::f16: return widen(to_half(x));
    case DType::bf16: return widen(to_bfloat16(x));
    default: return x;
  }
}

}  // namespace assay
