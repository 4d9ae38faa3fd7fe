// Lower precisions, emulated: what a kernel computes that silently holds fewer bits.
#pragma once

#include <bit>
#include <cstdint>

namespace assay::planted {

/// x rounded to nearest even with `bits` significant bits, the hidden one included (finite x, float's range).
inline float rounded(float x, int bits) {
  const int drop = 24 - bits;
  auto word = std::bit_cast<std::uint32_t>(x);
  if ((word & 0x7f800000u) == 0x7f800000u) return x;
  word += ((1u << (drop - 1)) - 1) + ((word >> drop) & 1u);
  return std::bit_cast<float>(word & ~((1u << drop) - 1));
}
/// x truncated to `bits` significant bits.
inline float truncated(float x, int bits) {
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(x) & ~((1u << (24 - bits)) - 1));
}

}  // namespace assay::planted
