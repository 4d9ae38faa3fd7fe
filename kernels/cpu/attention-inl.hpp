// Packing of rows as float32 and products of packed tiles, shared by attention and its gradient. Included once per SIMD
// target.
#if defined(ASSAY_KERNELS_CPU_ATTENTION_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef ASSAY_KERNELS_CPU_ATTENTION_INL
#undef ASSAY_KERNELS_CPU_ATTENTION_INL
#else
#define ASSAY_KERNELS_CPU_ATTENTION_INL
#endif

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/cpu/functions-inl.hpp"
#include "kernels/cpu/gemm_tile-inl.hpp"
#include "kernels/cpu/storage-inl.hpp"
#include "kernels/cpu/transpose-inl.hpp"
#include "kernels/heads.hpp"

HWY_BEFORE_NAMESPACE();
namespace assay::cpu::HWY_NAMESPACE {

/// Queries of one block, and keys of one tile.
inline constexpr Index kBlock = 64, kKeys = 64;
static_assert(kKeys % kTileCols == 0, "tiles of keys are whole");

/// Width of packed rows of d elements: whole tiles, so that a full-vector load stays within its row.
inline Index packed_width(Index d) { return (d + kTileCols - 1) / kTileCols * kTileCols; }

/// to[0, d) = scale from[0, d), zeros up to the packed width.
template <class S>
void pack_row(const S* from, Index d, float scale, float* to) {
  const FloatTag tag;
  const auto factor = hn::Set(tag, scale);
  for_each_vector(tag, d, [&](Index c, std::size_t count) {
    hn::StoreU(hn::Mul(load_first(tag, from + c, count), factor), tag, to + c);
  });
  std::fill(to + d, to + packed_width(d), 0.0F);
}

/// to[c][j] = rows[j][c] for packed rows j < n of d elements; zeros for j up to kKeys.
inline void transpose_rows(const float* rows, Index n, Index d, float* to) {
  transpose_block(FloatTag(), n, d, rows, packed_width(d), to, kKeys);
  if (n < kKeys)
    for (Index c = 0; c < d; ++c) std::fill(to + c * kKeys + n, to + (c + 1) * kKeys, 0.0F);
}

/// C[rows, columns] (+)= A[rows, k] · B[k, columns], or Aᵀ[rows, k] with A [k, rows]; every element is one chain over
/// k. B consists of whole tiles of columns; C beyond `columns` is left unchanged.
template <bool kTransposedA>
void multiply(Index rows, Index columns, Index k, const float* a, Index a_step, const float* b, Index b_step, float* c,
              Index c_step, bool accumulate) {
  GemmCall steps;
  steps.k = k;
  steps.a.ld = a_step;
  steps.b.ld = b_step;
  steps.ldc = steps.addend_ld = c_step;
  for (Index j = 0; j < columns; j += kTileCols) {
    const Index width = std::min(kTileCols, columns - j), vectors = width > kLanes ? 2 : 1;
    const Index tallest = tile_rows(vectors);
    for (Index i = 0; i < rows; i += tallest) {
      float* const tile = c + i * c_step + j;
      tile_function<kTransposedA>(std::min(tallest, rows - i), vectors)(steps, kTransposedA ? a + i : a + i * a_step,
                                                                        b + j, tile, accumulate ? tile : nullptr,
                                                                        width - (vectors - 1) * kLanes);
    }
  }
}

/// Replaces score[0, n) by its weights under the running maximum and zeros the rest up to kKeys. Where the maximum
/// grows, the total of weights and the packed row of earlier sums are rescaled.
inline void weigh(float* score, Index n, float& largest, float& total, float* sums, Index d) {
  const FloatTag tag;
  auto greatest = hn::Set(tag, largest);
  for_each_vector(tag, n, [&](Index j, std::size_t count) {
    const auto x = hn::LoadU(tag, score + j);
    const auto on = hn::And(hn::FirstN(tag, count), hn::Gt(x, greatest));  // a NaN is no maximum: its weight is NaN
    greatest = hn::IfThenElse(on, x, greatest);
  });
  const float before = largest, now = hn::GetLane(hn::MaxOfLanes(tag, greatest));
  const float shift = now == -INFINITY ? 0.0F : now;
  const auto shifts = hn::Set(tag, shift);
  auto sum = hn::Zero(tag);
  for (Index j = 0; j < kKeys; j += kLanes) {
    const auto on = hn::FirstN(tag, static_cast<std::size_t>(std::clamp<Index>(n - j, 0, kLanes)));
    const auto weight = hn::IfThenElseZero(on, exp_of_negative(tag, hn::Sub(hn::LoadU(tag, score + j), shifts)));
    hn::StoreU(weight, tag, score + j);
    sum = hn::Add(sum, weight);
  }
  if (before < now && before > -INFINITY) {
    const float factor = std::exp(before - now);
    total *= factor;
    for (Index c = 0; c < d; c += kLanes)
      hn::StoreU(hn::Mul(hn::LoadU(tag, sums + c), hn::Set(tag, factor)), tag, sums + c);
  }
  largest = now;
  total += hn::GetLane(hn::SumOfLanes(tag, sum));
}

/// Returns true if rows [from, to) of packed rows hold no NaN or infinity.
inline bool all_finite(const float* rows, Index from, Index to, Index width) {
  const FloatTag tag;
  const Index lanes = static_cast<Index>(hn::Lanes(tag));
  auto zero = hn::Zero(tag);  // 0 · x is NaN where x is not finite
  for (Index e = from * width; e < to * width; e += lanes)
    zero = hn::MulAdd(hn::Zero(tag), hn::LoadU(tag, rows + e), zero);
  return hn::AllTrue(tag, hn::Eq(zero, hn::Zero(tag)));
}

}  // namespace assay::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
