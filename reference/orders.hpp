// Bounds for the different orders in which correct kernels evaluate the same number.
#pragma once

#include <algorithm>
#include <cfloat>
#include <cmath>

#include "core/forms.hpp"
#include "core/scaled_sum.hpp"
#include "core/sum.hpp"

namespace assay::reference {

/// Returns x; y is the same number evaluated in another order. For Bounded, the bound holds for both. Infinite inputs
/// may give an infinity in one order and NaN in the other (inf - inf): any non-finite value is then correct.
template <class T>
T any_order(const T& x, const T& /*y*/) {
  return x;
}
inline Bounded any_order(const Bounded& x, const Bounded& y) {
  Bounded both = any_sum_order(x, y);
  both.may_overflow |= std::isnan(x.value) != std::isnan(y.value);
  return both;
}

/// Returns a b c d, multiplied in any order.
template <class T>
T product_of_four(const T& a, const T& b, const T& c, const T& d) {
  return a * b * c * d;
}
/// Three roundings in any order. The underflow loss of a product of two factors is scaled by the two others, that of a
/// product of three by the fourth.
inline Bounded product_of_four(const Bounded& a, const Bounded& b, const Bounded& c, const Bounded& d) {
  const Roundings& r = Roundings::current();
  double reach[] = {std::fabs(a.value) + a.error, std::fabs(b.value) + b.error, std::fabs(c.value) + c.error,
                    std::fabs(d.value) + d.error};
  std::ranges::sort(reach);
  Bounded all(product(a, b, c) * d);
  if (!(std::fabs(all.value) <= DBL_MAX)) {
    // Infinity times a product that vanished.
    all.may_overflow |= !std::isnan(all.value) && reach[0] * reach[1] * std::min(reach[2], 1.0) < FLT_MIN;
    return all;
  }
  const double pair = reach[3] * reach[2], triple = pair * reach[1];
  const double lost = r.underflow * (reach[3] + 2 * pair) * (1 + 4 * r.unit);
  all.error += lost;
  all.statistical += lost;
  all.may_overflow |= !(pair <= r.largest) || !(triple <= r.largest);
  return all;
}

/// Returns keep a + take b, keep + take = 1. Correct kernels also evaluate a + take (b - a) and, if take is at least
/// 1/2, b - keep (b - a), or (b - keep b) + keep a with the difference fused, which rounds as a product does.
template <class T>
T weighted_mean(const T& keep, const T& a, const T& take, const T& b) {
  Sum<T> sum;
  sum += keep * a;
  sum += take * b;
  return sum.value();
}
/// In the first of the other orders a occurs twice, but its error e contributes only keep times. That order adds only
/// its roundings, of numbers with the errors e of a and f of b: the difference is rounded with u (e + f) more, take
/// times that difference likewise, and the sum with u (e + (e + f)) at most, take <= 1: together below 4 u (1 + 4 u) (e
/// + f). In the second order b and f have the roles of a and e. It forms keep as 1 - take, which errs by half a unit of
/// keep.
inline Bounded weighted_mean(const Bounded& keep, const Bounded& a, const Bounded& take, const Bounded& b) {
  const Bounded first = weighted_mean<Bounded>(keep, a, take, b);
  const auto without_error = [](const Bounded& x) {  // a tiny error remains for values that are not floats
    const double none = x.error > 0 ? 0x1p-1000 : 0;
    return Bounded(x.value, none, none, x.may_overflow);
  };
  const Bounded from = without_error(a), to = without_error(b), apart = to - from;
  const double off = std::max(keep.error, 0x1p-24 * std::fabs(keep.value));
  const bool from_above = take.value >= 0.5;
  const Bounded below = from + take * apart, above = to - Bounded(keep.value, off, off, false) * apart;
  const double roundings = 4 * Roundings::current().unit;
  const auto with_errors = [&](const Bounded& other) {
    const double own = other.error + roundings * (1 + roundings) * (a.error + b.error);
    const auto with = [&](double of_a, double of_b) {
      return std::fabs(keep.value) * of_a + std::fabs(take.value) * of_b + own;
    };
    return Bounded(other.value, with(a.error, b.error), with(a.statistical, b.statistical), other.may_overflow);
  };
  Bounded all = any_order(first, with_errors(below));
  all.may_overflow |= std::isinf(b.value);  // b minus itself
  return from_above ? any_order(all, with_errors(above)) : all;
}

/// Returns a x / y: the product first, or the quotient.
template <class T>
T scaled_quotient(const T& a, const T& x, const T& y) {
  return any_order(T(a * quotient(x, y)), quotient(T(a * x), y));
}

}  // namespace assay::reference
