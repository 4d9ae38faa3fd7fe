// Emulates lower precisions of kernels that silently keep fewer bits.
#pragma once

#include <bit>
#include <cstdint>

namespace assay::planted {

/// Rounds x to nearest even with `bits` significant bits, including the hidden one (finite x, float's range).
inline float rounded(float x, int bits) {
  const int drop = 24 - bits;
  auto word = std::bit_cast<std::uint32_t>(x);
  if ((word & 0x7f800000u) == 0x7f800000u) return x;
  word += ((1u << (drop - 1)) - 1) + ((word >> drop) & 1u);
  return std::bit_cast<float>(word & ~((1u << drop) - 1));
}
/// Truncates x to `bits` significant bits.
inline float truncated(float x, int bits) {
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(x) & ~((1u << (24 - bits)) - 1));
}

}  // namespace assay::planted
