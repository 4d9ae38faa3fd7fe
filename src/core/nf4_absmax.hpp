// Double quantization of QLoRA: 8-bit codes for the scales of NF4 blocks, the values of these codes, and arithmetic
// that makes the encoder give the same bits on every device. Sources: Dettmers, Pagnoni, Holtzman & Zettlemoyer, QLoRA:
// Efficient Finetuning of Quantized LLMs, 2023, section 3; Dettmers, Lewis, Shleifer & Zettlemoyer, 8-bit Optimizers
// via Block-wise Quantization, 2022, section 1.3 (the dynamic tree map; bitsandbytes, functional.create_dynamic_map).
#pragma once

#include <array>
#include <cfloat>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "core/nf4.hpp"

namespace assay {

/// Number of NF4 scales that share a second-level scale: consecutive elements across all rows.
inline constexpr Index kAbsmaxGroup = 256;
constexpr Index absmax_groups(Index count) { return (count + kAbsmaxGroup - 1) / kAbsmaxGroup; }

inline constexpr std::uint8_t kAbsmaxZero = 127;  ///< the code of 0

/// Returns the value of a code: 0 for 127, 1 for 255, and for 127 + 2^e + j the middle of interval j of the 2^e that
/// divide [0.1, 1] 10^(e - 6), e = 0 .. 6. Code 127 - c has the negative value of 127 + c, so -1 has no code. The value
/// is a quotient of two integers representable as floats: one rounding.
constexpr float absmax_entry(unsigned code) {
  if (code == 255) return 1.0F;
  const int place = static_cast<int>(code) - kAbsmaxZero, from_zero = place < 0 ? -place : place;
  if (from_zero == 0) return 0.0F;
  float intervals = 1, tens = 1e7F;
  while (2 * static_cast<int>(intervals) <= from_zero) intervals *= 2, tens /= 10;
  const float j = static_cast<float>(from_zero) - intervals;
  const float value = (2 * intervals + 18 * j + 9) / (2 * intervals * tens);
  return place < 0 ? -value : value;
}
constexpr std::array<float, 256> absmax_entries() {
  std::array<float, 256> entries{};
  for (unsigned code = 0; code < entries.size(); ++code) entries[code] = absmax_entry(code);
  return entries;
}
inline constexpr std::array<float, 256> kAbsmaxCode = absmax_entries();

/// Returns the midpoint of two adjacent entries, rounded to float: for a scale of 1, the largest value with the lower
/// code.
constexpr float absmax_midpoint(float below, float above) { return (below + above) / 2; }
constexpr std::array<float, 255> absmax_midpoints() {
  std::array<float, 255> midpoints{};
  for (std::size_t i = 0; i < midpoints.size(); ++i) midpoints[i] = absmax_midpoint(kAbsmaxCode[i], kAbsmaxCode[i + 1]);
  return midpoints;
}
inline constexpr std::array<float, 255> kAbsmaxMidpoints = absmax_midpoints();

/// Returns an NF4 scale as the encoder uses it: +0 below 2^-120, and NaN if negative, which no absmax is.
constexpr float absmax_value(float absmax) {
  const float value = nf4_scale(absmax);
  return value >= 0 ? value + 0.0F : std::numeric_limits<float>::quiet_NaN();
}

/// Returns the factor that turns the sum of `count` values into their mean.
constexpr float absmax_reciprocal(Index count) { return static_cast<float>(1.0 / static_cast<double>(count)); }
/// Returns the offset from the sum of all values and the reciprocal of their number; NaN if the sum is not finite.
constexpr float absmax_offset(float sum, float reciprocal) {
  return sum <= FLT_MAX ? nf4_scale(sum * reciprocal) : std::numeric_limits<float>::quiet_NaN();
}

/// Second-level scales below this count as 0. The smallest midpoint is 2.75e-7, so products are 0 or normal, and a
/// difference that a device flushes lies on the same side of all midpoints.
inline constexpr float kAbsmaxSmallest = 0x1p-100F;
constexpr float absmax_scale(float largest) { return largest < kAbsmaxSmallest ? 0.0F : largest; }

}  // namespace assay
