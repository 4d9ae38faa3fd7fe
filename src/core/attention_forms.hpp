// Formulas of attention that correct kernels evaluate in more than one way (see core/forms.hpp): scaled scores,
// weights, weighted means and the logarithm of their sum.
#pragma once

#include <cfloat>
#include <cmath>
#include <vector>

#include "core/forms.hpp"
#include "core/sum.hpp"
#include "core/view.hpp"

namespace assay {

/// scale · sum x y, with the scale applied to the sum, to one factor of each product, or as its root to both.
template <class T>
class ScaledDot {
 public:
  explicit ScaledDot(const T& scale) : scale_(scale) {}
  void add(const T& x, const T& y) { sum_ += x * y; }
  T value() const { return scale_ * sum_.value(); }

 private:
  T scale_;
  Sum<T> sum_;
};

/// Returns an intermediate result as used in a product: tensor cores take factors in the format of the inputs
/// (Arithmetic::inputs).
template <class T>
T factor(const T& x) {
  return x;
}
Bounded factor(const Bounded& x);

/// Returns x as the shift of a softmax. Only its value matters: any shift cancels.
template <class T>
T shift_by(const T& x) {
  return x;
}
inline Bounded shift_by(const Bounded& x) { return {x.value, 0, 0, false}; }

/// Returns exp(score - shift), in base e or in base 2: 2^(score c - shift c), c = log2 e. With `rescalings`, a term of
/// a softmax under the maximum of its scores (softmax_term); without, under any shift.
template <class T>
T attention_weight(const T& score, const T& shift, double rescalings) {
  return softmax_term(score, shift, rescalings);
}
template <class T>
T attention_weight(const T& score, const T& shift) {
  return exp(score - shift);
}
Bounded attention_weight(const Bounded& score, const Bounded& shift, double rescalings);
Bounded attention_weight(const Bounded& score, const Bounded& shift);

/// Returns shift + log(sum), in base e or as (shift c + log2 sum) / c.
template <class T>
T log_of_sum(const T& shift, const T& sum) {
  return shift + log(sum);
}
Bounded log_of_sum(const Bounded& shift, const Bounded& sum);

/// Returns the relative error of exp(l - logsumexp), the weight of a part of up to `n` terms with logsumexp l, and of a
/// term of the part whose log weight is `below` under the shift. Merged parts only (attention_forms.cpp), otherwise 0.
double merging_error(double shift, double below, double n);

/// Returns `value`, the result of a query without weight. If scores may have overflowed, any other weights are possible
/// too.
template <class T>
T without_weight(double value, const T& /*weight*/) {
  return T(value);
}
Bounded without_weight(double value, const Bounded& weight);

/// sum w v / sum w for weights of attention_weight under this shift: divided at the end, weight by weight, or by
/// merging parts (Arithmetic::merges_parts).
template <class T>
class WeightedMean {
 public:
  /// `weights` must outlive this object.
  WeightedMean(View<const T> weights, const T& /*shift*/) : weights_(weights) {
    Sum<T> sum;
    for (Index j = 0; j < weights.size(); ++j) sum += weights(j);
    sum_ = sum.value();
  }
  T weight() const { return sum_; }
  /// Returns the mean of value(j).
  template <class F>
  T of(F value) const {
    Sum<T> products;
    for (Index j = 0; j < weights_.size(); ++j) products += weights_(j) * value(j);
    return quotient(products.value(), sum_);
  }

 private:
  View<const T> weights_;
  T sum_;
};

template <>
class ScaledDot<Bounded> {
 public:
  explicit ScaledDot(const Bounded& scale) : scale_(scale) {}
  void add(const Bounded& x, const Bounded& y) {
    sum_ += x * y;
    if (!(std::fabs(x.value) <= DBL_MAX && std::fabs(y.value) <= DBL_MAX)) [[unlikely]]
      return;  // the sum shows its class; overflow concerns finite terms only
    const double left = std::fabs(x.value) + x.error, right = std::fabs(y.value) + y.error;
    magnitude_ += left * right;
    both_ += left + right;
    left_ = left > left_ ? left : left_;
    count_ += 1;
  }
  Bounded value() const;

 private:
  Bounded scale_;
  Sum<Bounded> sum_;
  /// sums of |x y| and |x| + |y|, largest |x|, number of terms
  double magnitude_ = 0, both_ = 0, left_ = 0, count_ = 0;
};

/// Errors shared by all weights cancel: an error e of a weight moves the mean by e |v - mean| / sum w
/// (attention_forms.cpp).
template <>
class WeightedMean<Bounded> {
 public:
  WeightedMean(View<const Bounded> weights, const Bounded& shift);
  Bounded weight() const { return sum_; }
  template <class F>
  Bounded of(F value) const {
    values_.resize(weights_.size());
    for (std::size_t j = 0; j < values_.size(); ++j) values_[j] = value(static_cast<Index>(j));
    return mean();
  }

 private:
  struct Weight {
    Bounded w;
    double own;     ///< further error of the weight's product with a value of 1
    double stored;  ///< absolute part of `own`
  };
  Bounded mean() const;

  std::vector<Weight> weights_;
  mutable std::vector<Bounded> values_;
  Bounded sum_;
  double errors_ = 0;  ///< sum of the weights' errors
  bool finite_ = true;
};

}  // namespace assay
