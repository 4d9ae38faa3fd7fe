// Rows of the cross-entropy and of its gradient.
// Included once per SIMD target (Highway's convention for files named *-inl).
#if defined(ASSAY_KERNELS_CPU_CROSS_ENTROPY_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef ASSAY_KERNELS_CPU_CROSS_ENTROPY_INL
#undef ASSAY_KERNELS_CPU_CROSS_ENTROPY_INL
#else
#define ASSAY_KERNELS_CPU_CROSS_ENTROPY_INL
#endif

#include <cmath>
#include <limits>

#include "hwy/highway.h"
#include "kernels/cpu/functions-inl.hpp"
#include "kernels/cpu/storage-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace assay::cpu::HWY_NAMESPACE {

/// The maximum of a row's logits, and the logarithm of sum_j exp(x[j] - maximum).
struct RowSum {
  float maximum, log_sum;
};

/// Makes two passes over a row; the second hits the cache. Lanes past the end hold -inf, whose exponential is 0.
template <class S>
RowSum sum_row(const S* x, Index n) {
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const Index lanes = static_cast<Index>(hn::Lanes(d)), whole = n / lanes * lanes;
  const auto left = static_cast<std::size_t>(n - whole);
  const auto rest = hn::FirstN(d, left);
  const V lowest = hn::Set(d, -std::numeric_limits<float>::infinity());
  const V tail = whole < n ? hn::IfThenElse(rest, load_first(d, x + whole, left), lowest) : lowest;
  V top = tail, second = lowest;
  Index j = 0;
  for (; j + 2 * lanes <= whole; j += 2 * lanes) {
    top = hn::Max(top, load(d, x + j));
    second = hn::Max(second, load(d, x + j + lanes));
  }
  if (j < whole) top = hn::Max(top, load(d, x + j));
  const float maximum = hn::GetLane(hn::MaxOfLanes(d, hn::Max(top, second)));
  const V m = hn::Set(d, maximum);
  V even = whole < n ? exp_of_negative(d, hn::Sub(tail, m)) : hn::Zero(d), odd = hn::Zero(d);
  // If the maximum is -inf, lanes past the end give NaN (-inf - -inf): clear them.
  if (whole < n) even = hn::IfThenElseZero(rest, even);
  for (j = 0; j + 2 * lanes <= whole; j += 2 * lanes) {
    even = hn::Add(even, exp_of_negative(d, hn::Sub(load(d, x + j), m)));
    odd = hn::Add(odd, exp_of_negative(d, hn::Sub(load(d, x + j + lanes), m)));
  }
  if (j < whole) even = hn::Add(even, exp_of_negative(d, hn::Sub(load(d, x + j), m)));
  return {maximum, std::log(hn::GetLane(hn::SumOfLanes(d, hn::Add(even, odd))))};
}

/// dx[j] = scale (exp(x[j] - logsumexp) - [j = y]). Consistent inputs satisfy x[j] <= logsumexp up to rounding; an
/// inconsistent input beyond exp's range gives infinity.
template <class S>
void logit_gradients(const S* x, Index n, Index y, float logsumexp, float scale, S* dx) {
  const hn::ScalableTag<float> d;
  const auto shift = hn::Set(d, logsumexp), factor = hn::Set(d, scale);
  for_each_vector(d, n, [&](Index j, std::size_t count) {
    store_first(d, hn::Mul(exp_of(d, hn::Sub(load_first(d, x + j, count), shift)), factor), dx + j, count);
  });
  dx[y] = narrow<S>((std::exp(widen(x[y]) - logsumexp) - 1.0F) * scale);
}

}  // namespace assay::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
