// NF4, the 4-bit code of QLoRA: its 16 values, their packing, and arithmetic that gives the same bits on every device.
// Source: Dettmers, Pagnoni, Holtzman & Zettlemoyer, QLoRA: Efficient Finetuning of Quantized LLMs, 2023, section 3 and
// appendix E.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/shape.hpp"

namespace assay {

/// Elements that share a scale. The last block of a row may be short, so that no two rows share a block.
inline constexpr Index kNf4Block = 64;
/// Bytes of a block's codes: two codes per byte, the earlier element in the high bits.
inline constexpr Index kNf4Bytes = kNf4Block / 2;

constexpr Index nf4_blocks(Index k) { return (k + kNf4Block - 1) / kNf4Block; }

/// Quantiles of the normal distribution, scaled to [-1, 1]; entry 7 is 0.
inline constexpr std::array<float, 16> kNf4{
    -1.0F,
    -0.6961928009986877F,
    -0.5250730514526367F,
    -0.39491748809814453F,
    -0.28444138169288635F,
    -0.18477343022823334F,
    -0.09105003625154495F,
    0.0F,
    0.07958029955625534F,
    0.16093020141124725F,
    0.24611230194568634F,
    0.33791524171829224F,
    0.44070982933044434F,
    0.5626170039176941F,
    0.7229568362236023F,
    1.0F,
};
inline constexpr std::uint8_t kNf4Zero = 7;         ///< the code of 0
inline constexpr std::uint8_t kNf4ZeroPair = 0x77;  ///< two zero codes

/// Returns the midpoint of entries i and i + 1, rounded to float, for each i: the largest value of a block that has
/// code i.
constexpr std::array<float, 15> nf4_midpoints() {
  std::array<float, 15> midpoints{};
  for (std::size_t i = 0; i < midpoints.size(); ++i) midpoints[i] = (kNf4[i] + kNf4[i + 1]) / 2;
  return midpoints;
}
inline constexpr std::array<float, 15> kNf4Midpoints = nf4_midpoints();

/// Scales below this magnitude count as 0 of their sign. Products with entries and midpoints are then 0 or normal (the
/// smallest nonzero midpoint is 0.0398), so that devices that flush subnormals give the same bits as devices that do
/// not.
inline constexpr float kNf4Smallest = 0x1p-120F;
constexpr float nf4_scale(float absmax) {
  return -kNf4Smallest < absmax && absmax < kNf4Smallest ? absmax * 0.0F : absmax;
}

/// Returns the code of element p of a row of packed bytes.
constexpr unsigned nf4_code(const std::uint8_t* row, Index p) {
  return p % 2 == 0 ? row[p / 2] >> 4U : row[p / 2] & 15U;
}

}  // namespace assay
