// Sums of the columns of a row-major matrix. Included once per SIMD target.
#if defined(ASSAY_KERNELS_CPU_COLUMN_SUM_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef ASSAY_KERNELS_CPU_COLUMN_SUM_INL
#undef ASSAY_KERNELS_CPU_COLUMN_SUM_INL
#else
#define ASSAY_KERNELS_CPU_COLUMN_SUM_INL
#endif

#include <algorithm>
#include <type_traits>

#include "kernels/cpu/elementwise.hpp"
#include "kernels/cpu/storage-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace assay::cpu::HWY_NAMESPACE {

/// Adds x(i, j) to sums[j] for kRows rows from `row` on, ascending, and j in [from, to); with `copy`, also copy(i, j) =
/// x(i, j).
template <int kRows, class S>
HWY_INLINE void add_rows(Index row, Index from, Index to, Rows<const S> x, float* sums,
                         std::type_identity_t<const Rows<S>*> copy) {
  const hn::ScalableTag<float> d;
  const Index lanes = static_cast<Index>(hn::Lanes(d));
  Index j = from;
  for (; j + lanes <= to; j += lanes) {
    auto sum = hn::LoadU(d, sums + j);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      const auto v = load(d, x.data + (row + r) * x.ld + j);
      sum = hn::Add(sum, v);
      if (copy != nullptr) store(d, v, copy->data + (row + r) * copy->ld + j);
    }
    hn::StoreU(sum, d, sums + j);
  }
  if (j == to) return;
  const auto count = static_cast<std::size_t>(to - j);
  auto sum = load_first(d, sums + j, count);
  for (int r = 0; r < kRows; ++r) {
    const auto v = load_first(d, x.data + (row + r) * x.ld + j, count);
    sum = hn::Add(sum, v);
    if (copy != nullptr) store_first(d, v, copy->data + (row + r) * copy->ld + j, count);
  }
  store_first(d, sum, sums + j, count);
}

/// sums[j] = sum over i < rows, ascending, of x(i, j) for j < n; with `copy`, also copy(i, j) = x(i, j). Works on
/// blocks of columns whose sums stay in the first-level cache.
template <class S>
void sum_columns(Index rows, Index n, Rows<const S> x, float* sums, std::type_identity_t<const Rows<S>*> copy) {
  constexpr Index kBlock = 2048;
  std::fill_n(sums, n, 0.0F);
  for (Index from = 0; from < n; from += kBlock) {
    const Index to = std::min(n, from + kBlock);
    Index i = 0;
    for (; i + 4 <= rows; i += 4) add_rows<4>(i, from, to, x, sums, copy);
    for (; i < rows; ++i) add_rows<1>(i, from, to, x, sums, copy);
  }
}

}  // namespace assay::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
