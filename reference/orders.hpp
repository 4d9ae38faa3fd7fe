// Bounds for the orders in which correct kernels evaluate the same number.
#pragma once

#include <cmath>

#include "core/scaled_sum.hpp"
#include "core/sum.hpp"

namespace assay::reference {

/// x where y is the same number evaluated in another order, the bounds being those of both. Infinite inputs may give an infinity in
/// one order and NaN in the other (inf - inf): whatever is not finite is right then.
template <class T>
T either_order(const T& x, const T& /*y*/) {
  return x;
}
inline Bounded either_order(const Bounded& x, const Bounded& y) {
  Bounded both = in_both_orders(x, y);
  both.may_overflow |= std::isnan(x.value) != std::isnan(y.value);
  return both;
}

/// keep a + take b, keep + take = 1; correct kernels also evaluate a + take (b - a).
template <class T>
T weighted_mean(const T& keep, const T& a, const T& take, const T& b) {
  Sum<T> sum;
  sum += keep * a;
  sum += take * b;
  return sum.value();
}
/// In the other order a counts twice, but its own error only keep times: what that order adds are its roundings, of numbers that are
/// off by their errors.
inline Bounded weighted_mean(const Bounded& keep, const Bounded& a, const Bounded& take, const Bounded& b) {
  const Bounded first = weighted_mean<Bounded>(keep, a, take, b);
  const Bounded from(a.value, 0, 0, a.may_overflow), to(b.value, 0, 0, b.may_overflow), other = from + take * (to - from);
  constexpr double kRoundings = 4;
  const double own = other.error + kRoundings * Roundings::current().unit * (a.error + b.error);
  const auto with = [&](double of_a, double of_b) { return std::fabs(keep.value) * of_a + std::fabs(take.value) * of_b + own; };
  return either_order(first, {other.value, with(a.error, b.error), with(a.statistical, b.statistical), other.may_overflow});
}

}  // namespace assay::reference
