// Formulas of attention that correct kernels evaluate in more than one way (see core/forms.hpp): scaled scores, weights,
// weighted means and the logarithm of their sum.
#pragma once

#include <vector>

#include "core/forms.hpp"
#include "core/sum.hpp"

namespace assay {

/// scale · sum x y: the scale on the sum, or on one factor of each product.
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

/// An intermediate result as a kernel multiplies it: tensor cores take factors in the format of the inputs
/// (Arithmetic::inputs).
template <class T>
T factor(const T& x) {
  return x;
}
Bounded factor(const Bounded& x);

/// x, of which only the value matters: the shift of a softmax cancels, whatever it is.
template <class T>
T shift_by(const T& x) {
  return x;
}
inline Bounded shift_by(const Bounded& x) { return {x.value, 0, 0, false}; }

/// exp(score - shift), one of `terms` terms (softmax_term), in base e or in base 2: 2^(score c - shift c), c = log2 e.
template <class T>
T attention_weight(const T& score, const T& shift, double terms) {
  return softmax_term(score, shift, terms);
}
Bounded attention_weight(const Bounded& score, const Bounded& shift, double terms);

/// shift + log(sum), in base e or as (shift c + log2 sum) / c.
template <class T>
T log_of_sum(const T& shift, const T& sum) {
  return shift + log(sum);
}
Bounded log_of_sum(const Bounded& shift, const Bounded& sum);

/// sum w v / sum w for at most `terms` weights of attention_weight: divided at the end, or each weight first.
template <class T>
class WeightedMean {
 public:
  explicit WeightedMean(double /*terms*/) {}
  void add(const T& weight, const T& value) {
    products_ += weight * value;
    weights_ += weight;
  }
  T value() const { return quotient(products_.value(), weights_.value()); }

 private:
  Sum<T> products_, weights_;
};

template <>
class ScaledDot<Bounded> {
 public:
  explicit ScaledDot(const Bounded& scale) : scale_(scale) {}
  void add(const Bounded& x, const Bounded& y) {
    sum_ += x * y;
    scaled_ += Bounded(x * scale_) * y;
  }
  Bounded value() const;

 private:
  Bounded scale_;
  Sum<Bounded> sum_, scaled_;
};

/// Errors that weights share cancel: an error e of a weight moves the mean by e |v - mean| / sum w (attention_forms.cpp).
template <>
class WeightedMean<Bounded> {
 public:
  explicit WeightedMean(double terms) : terms_(terms) {}
  void add(const Bounded& weight, const Bounded& value) { pairs_.push_back({weight, value}); }
  Bounded value() const;

 private:
  struct Pair {
    Bounded weight, value;
  };
  double terms_;
  std::vector<Pair> pairs_;
};

}  // namespace assay
