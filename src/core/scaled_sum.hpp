// A sum in which some terms have a common factor: plain terms + factor · sum of products.
#pragma once

#include "core/bounded.hpp"
#include "core/forms.hpp"

namespace assay {

/// Returns x; y is the same number evaluated in another order. For Bounded, the bound holds for both.
template <class T>
T any_sum_order(const T& x, const T& /*y*/) {
  return x;
}
inline Bounded any_sum_order(const Bounded& x, const Bounded& y) {
  return {x.value, x.error > y.error ? x.error : y.error, x.statistical > y.statistical ? x.statistical : y.statistical,
          x.may_overflow || y.may_overflow};
}

/// `ScaledSum<T> s(factor); s += x; s.scaled(a, b); s.value()` is x + factor a b + ..
///
/// Correct kernels multiply either factor of each product, partial sums or the whole sum of products by the factor. The
/// sum of all terms x and factor a b, each of the latter with the two roundings of a product of three, bounds all these
/// orders: scaling a partial sum of magnitude s (computed with an error of e) costs u factor (s + e). The part u factor
/// s is the second rounding of its terms. The error e of m additions carries over as factor e <= m u sum |factor a b|,
/// which the bound grants to those additions. The second sum detects overflow before scaling.
template <class T>
class ScaledSum {
 public:
  explicit ScaledSum(const T& factor) : factor_(factor) {}
  template <class Term>
  ScaledSum& operator+=(const Term& term) {
    plain_ += term;
    return *this;
  }
  void scaled(const T& a, const T& b) {
    scaled_ += product(factor_, a, b);
    products_ += a * b;
  }
  T value() const {
    Sum<T> all = plain_;
    all += scaled_;
    return any_sum_order(all.value(), T(plain_.value() + T(factor_ * products_.value())));
  }

 private:
  T factor_;
  Sum<T> plain_, scaled_, products_;
};

}  // namespace assay
