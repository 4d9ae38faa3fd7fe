// The register tile of tiled_gemm. Included once per SIMD target.
#if defined(ASSAY_KERNELS_CPU_GEMM_TILE_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef ASSAY_KERNELS_CPU_GEMM_TILE_INL
#undef ASSAY_KERNELS_CPU_GEMM_TILE_INL
#else
#define ASSAY_KERNELS_CPU_GEMM_TILE_INL
#endif

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "core/shape.hpp"
#include "kernels/cpu/gemm.hpp"
#include "kernels/cpu/simd-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace assay::cpu::HWY_NAMESPACE {

using FloatTag = hn::ScalableTag<float>;
inline constexpr Index kLanes = static_cast<Index>(hn::MaxLanes(FloatTag()));
/// Columns of the widest tile: two vectors.
inline constexpr Index kTileCols = 2 * kLanes;
/// Rows of the tallest tile of one and of two vectors: 8 and 24 accumulators of AVX-512's 32 registers, 12 of the 16 of
/// the older sets. At least 8 independent chains hide the latency of a fused multiply-add. A one-vector tile of 16 rows
/// would fit, but then all stores of a small product follow its last multiplication (16x16x16 took 13% longer).
inline constexpr Index tile_rows(Index vectors) {
  if (HWY_CAP_GE512) return vectors == 1 ? 8 : 12;
  return vectors == 1 ? 12 : 6;
}

/// One tile: C[rows, cols] = scale A[rows, k] · B[k, cols] + addend, each given by its first element; `g` gives k, the
/// scale and the row strides. A is read element by element, B in vectors. addend: C itself if an earlier block of k has
/// written C; null: no addend. last_lanes: columns in the last vector, 1..kLanes.
///
/// Every element of C is one chain over k in ascending order in every tile: the bits of a row of C do not depend on the
/// position of the row. Where masks do not suppress faults, B must be readable to the full width.
template <bool kColumnMajorA, int kRows, int kVectors>
HWY_NOINLINE void multiply_tile(const GemmCall& g, const float* a, const float* b, float* c, const float* addend,
                                Index last_lanes) {
  // Take the caller's own struct, not a copy made for the tile: reading two freshly written fields as one vector
  // defeats store forwarding, and the read waits behind all stores of earlier tiles (7% of 16x16x16). Copy the fields
  // to registers: through the reference, every store to C would reload them.
  const Index k = g.k, a_step = g.a.ld, b_step = g.b.ld, c_step = g.ldc, addend_step = g.addend_ld;
  const float scale = g.scale;
  const FloatTag d;
  using V = hn::Vec<FloatTag>;
  const auto last_mask = hn::FirstN(d, static_cast<std::size_t>(last_lanes));
  V sum[kRows][kVectors];
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i)
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) sum[i][v] = hn::Zero(d);

  // A second base pointer for rows 8 and on: seven multiples of a_step fit the registers, eleven do not.
  const float* a_high = !kColumnMajorA && kRows > 8 ? a + 8 * a_step : a;
  for (Index p = 0; p < k; ++p, b += b_step, a += kColumnMajorA ? a_step : 1, ++a_high) {
    V row[kVectors];
    if constexpr (kVectors == 2) row[0] = hn::LoadU(d, b);
    const float* last = b + (kVectors - 1) * kLanes;
    if constexpr (kMasksSuppressFaults) {
      row[kVectors - 1] = hn::MaskedLoad(last_mask, d, last);
    } else {
      row[kVectors - 1] = hn::LoadU(d, last);
    }
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      const float* low_or_high = i < 8 ? a : a_high;
      const V factor = hn::Set(d, kColumnMajorA ? a[i] : low_or_high[i % 8 * a_step]);
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) sum[i][v] = hn::MulAdd(factor, row[v], sum[i][v]);
    }
  }

  if (scale != 1) {
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i)
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) sum[i][v] = hn::Mul(sum[i][v], hn::Set(d, scale));
  }
  if (addend != nullptr) {
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i, addend += addend_step) {
      if constexpr (kVectors == 2) sum[i][0] = hn::Add(hn::LoadU(d, addend), sum[i][0]);
      sum[i][kVectors - 1] = hn::Add(load_masked(d, addend + (kVectors - 1) * kLanes, last_mask), sum[i][kVectors - 1]);
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i, c += c_step) {
    if constexpr (kVectors == 2) hn::StoreU(sum[i][0], d, c);
    store_masked(sum[i][kVectors - 1], d, c + (kVectors - 1) * kLanes, last_mask);
  }
}

using TileFunction = decltype(&multiply_tile<false, 1, 1>);

template <bool kColumnMajorA, int kVectors, int... kRowsLess1>
constexpr std::array<TileFunction, sizeof...(kRowsLess1)> tile_table(std::integer_sequence<int, kRowsLess1...>) {
  return {&multiply_tile<kColumnMajorA, kRowsLess1 + 1, kVectors>...};
}

/// Returns the tile function for a number of rows and of vectors (1 or 2). Rows: at least 1 and at most
/// tile_rows(vectors), or tile_rows(2) if a narrow panel uses the row tiles of wide ones.
template <bool kColumnMajorA>
TileFunction tile_function(Index rows, Index vectors) {
  static constexpr auto kNarrow =
      tile_table<kColumnMajorA, 1>(std::make_integer_sequence<int, int{std::max(tile_rows(1), tile_rows(2))}>());
  static constexpr auto kWide = tile_table<kColumnMajorA, 2>(std::make_integer_sequence<int, int{tile_rows(2)}>());
  const auto index = static_cast<std::size_t>(rows - 1);
  return vectors == 1 ? kNarrow[index] : kWide[index];
}

}  // namespace assay::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
