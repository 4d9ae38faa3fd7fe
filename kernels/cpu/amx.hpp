// The matrix unit of x86 processors for bfloat16 (AMX-BF16).
#pragma once

#include <cstdint>

#include "core/shape.hpp"

namespace assay::cpu::amx {

/// A tile holds 16 rows of 32 bfloat16 of A, 16 rows of 16 pairs of B (rows 2p and 2p + 1 of a column beside each
/// other), or 16 rows of 16 sums in float32.
inline constexpr Index kRows = 16, kTerms = 32;
inline constexpr Index kElements = kRows * kTerms;  ///< bfloat16 of a tile
/// Tiles of A and of B whose four products are formed at once.
inline constexpr Index kSide = 2;

/// Returns true if this processor has the unit, and its operating system lets this process use it.
bool available();

/// While it lives, this thread may call multiply().
class Configured {
 public:
  Configured();
  ~Configured();
  Configured(const Configured&) = delete;
  Configured& operator=(const Configured&) = delete;
};

/// sums[y][x][16][16] = A_y · B_x for y, x < 2 and `tiles` tiles of terms: tile t of A_y is at a[y] + t * kElements,
/// and so with B. Products are exact; even and odd terms are summed apart in float32, to nearest, a tile after another,
/// and subnormal numbers count as zero. Source: Intel 64 and IA-32 Architectures Software Developer's Manual, TDPBF16PS.
void multiply(const std::uint16_t* const a[kSide], const std::uint16_t* const b[kSide], Index tiles, float* sums);

}  // namespace assay::cpu::amx
