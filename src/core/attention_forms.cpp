// Bounds of attention's forms.
//
// Weighted mean. Let w_j be exact weights, v_j values, W = sum w_j, o = sum w_j v_j / W. A kernel computes weights w_j + e_j;
// the numerator holds them with further relative roundings: one to the format of factors, one where it divides each by the
// sum beforehand, and one for each rescaling, which the sum of weights rounds apart (together h_j, relative). Its numerator is
//   N = sum (w_j + e_j)(1 + h_j) v_j + n, its divisor D = sum (w_j + e_j) + d,
// n and d the errors of the sums, products' roundings included. Since sum w_j (v_j - o) = 0,
//   N - o D = sum e_j (v_j - o) + sum (w_j + e_j) h_j v_j + n - o d,
// and N / D - o = (N - o D) / D with D >= W - sum |e_j| - |d|. What e_j the weights share cancels where it stands: a common
// relative error gives sum w_j (v_j - o) = 0, but the bound takes |v_j - o|, as signs of e_j are not known.
#include "core/attention_forms.hpp"

#include <algorithm>

#include "core/rounded.hpp"

namespace assay {

using namespace detail;

// Scaled beforehand, each x is rounded once more: u |x y| for each term, and what is lost by underflow times |y|.
Bounded ScaledDot<Bounded>::value() const {
  const Roundings& r = Roundings::current();
  const Bounded sum = sum_.value();
  Bounded dot(scale_ * sum);
  const double scale = std::fabs(scale_.value) + scale_.error;
  const bool overflows = !(scale * left_ <= r.largest) || !(scale * magnitude_ * (1 + 4 * count_ * r.unit) <= r.largest);
  if (!(std::fabs(dot.value) <= DBL_MAX)) {
    dot.may_overflow = !std::isnan(dot.value) && (dot.may_overflow || overflows);
    return dot;
  }
  const double extra = (1 + r.growth(count_)) * (1 + 4 * r.unit) *
                       (r.unit * scale * magnitude_ + (magnitude_ > 0 ? r.underflow * (right_ + count_) + r.flush * count_ : 0));
  dot.error = std::max(dot.error, scale * sum.error + extra);
  dot.statistical = std::max(dot.statistical, scale * sum.statistical + extra);
  dot.may_overflow |= overflows;
  return dot;
}

Bounded factor(const Bounded& x) {
  const Roundings& r = Roundings::current();
  const double magnitude = std::fabs(x.value);
  if (r.of.inputs == Format::f32 || !(magnitude <= DBL_MAX)) return x;
  const auto bound = [&](double e) {
    return finite_or_infinite((e + r.input_unit * std::max(magnitude + e, r.input_floor)) * (1 + kDoubleSlack));
  };
  if (r.leaves_inputs(magnitude, x.error)) return anything();
  const double worst = magnitude + x.error > 0 ? bound(x.error) : 0;
  return {x.value, worst, std::min(worst, bound(x.statistical)), x.may_overflow || magnitude + worst > r.input_largest};
}

namespace {

// In base 2 the constant c is rounded once (alone, or with the scale: once more), and so is shift c; the difference is
// rounded as in base e.
Bounded in_either_base(const Bounded& score, const Bounded& shift) {
  Bounded argument = score;
  if (std::fabs(score.value) <= DBL_MAX && std::fabs(shift.value) <= DBL_MAX) {
    const double unit = Roundings::current().unit;
    const double beside = unit * (1 + 4 * unit) * (2 * (std::fabs(score.value - shift.value) + score.error) + std::fabs(shift.value));
    argument.error += beside;
    argument.statistical += beside;
  }
  return argument;
}

}  // namespace

Bounded attention_weight(const Bounded& score, const Bounded& shift, double rescalings) {
  return softmax_term(in_either_base(score, shift), shift, rescalings);
}

// Of a saved logsumexp, which is rounded: scores may lie above it, and powers overflow.
Bounded attention_weight(const Bounded& score, const Bounded& shift) { return exp(in_either_base(score, shift) - shift); }

// shift c is rounded, as is its sum with log2; the product with 1 / c costs that constant's rounding and its own.
Bounded log_of_sum(const Bounded& shift, const Bounded& sum) {
  const Bounded logarithm = log(sum);
  Bounded result = shift + logarithm;
  if (!(std::fabs(result.value) <= DBL_MAX)) return result;
  const double unit = Roundings::current().unit;
  const double beside = unit * (1 + 4 * unit) *
                        (std::fabs(shift.value) + std::fabs(logarithm.value) + logarithm.error +
                         2 * (std::fabs(result.value) + result.error));
  result.error += beside;
  result.statistical += beside;
  return result;
}

Bounded without_weight(double value, const Bounded& weight) { return weight.may_overflow ? anything() : Bounded(value); }

WeightedMean<Bounded>::WeightedMean(View<const Bounded> weights) {
  const Roundings& r = Roundings::current();
  const double shorter = r.of.inputs == Format::f32 ? 0 : r.input_unit;
  const Rescalings<Bounded> rescaled(weights.size(), weights);  // weights are in the order of their scores
  Sum<Bounded> sum;
  for (Index j = 0; j < weights.size(); ++j) {
    const Bounded& w = weights(j);
    const double reach = w.value + w.error, rescalings = rescaled.of(w);
    const double apart = (1 + shorter) * (1 + r.unit + r.division) * (1 + 2 * rescalings * r.unit * (1 + rescalings * 4 * r.unit)) - 1;
    // The product with a value is rounded too: of a weight as it is then held.
    const double own = reach * (apart + r.unit * (1 + apart));
    weights_.push_back({w, own, reach > 0 ? shorter * r.input_floor : 0});
    sum += w;
    errors_ += w.error;
    finite_ &= std::fabs(w.value) <= DBL_MAX && std::isfinite(w.error) && !(shorter > 0 && r.leaves_inputs(w.value, w.error));
  }
  sum_ = sum.value();
}

Bounded WeightedMean<Bounded>::mean() const {
  const Roundings& r = Roundings::current();
  Terms terms;
  bool finite = finite_;
  double shared = 0;  // sum of e_j |v_j|, which the numerator's error holds
  for (std::size_t j = 0; j < weights_.size(); ++j) {
    const auto& [w, own, stored] = weights_[j];
    const Bounded& v = values_[j];
    const double size = std::fabs(v.value), term = w.value * v.value;
    finite &= size <= DBL_MAX && std::isfinite(v.error);
    terms.add(term, w.error * size + (own + stored) * (size + v.error) + (w.value + w.error) * v.error + (size > 0 ? r.underflow : 0),
              w.may_overflow || v.may_overflow);
    if (r.aligned_floor > 0) terms.align(w.value + w.error, size + v.error, r.aligned_floor, term);
    shared += w.error * size;
  }
  if (!finite) {
    Sum<Bounded> plain;
    for (std::size_t j = 0; j < weights_.size(); ++j) plain += factor(weights_[j].w) * values_[j];
    return quotient(plain.value(), sum_);
  }
  const Bounded numerator = Terms::sum(terms, r);
  const double mean = numerator.value / sum_.value, least = sum_.value - sum_.error;
  if (!(least > 0)) return anything();
  double moved = 0, moved_statistical = 0;
  for (std::size_t j = 0; j < weights_.size(); ++j) {
    const double distance = std::fabs(values_[j].value - mean);
    moved += weights_[j].w.error * distance;
    moved_statistical += weights_[j].w.statistical * distance;
  }
  // The bounds of both sums hold the weights' errors in full; what remains of them is `moves`.
  const auto inherited = [&](double of_products, double of_weights, double moves) {
    const double slack = 4 * kDoubleSlack * (of_products + std::fabs(mean) * of_weights);
    return (std::max(of_products - shared, 0.0) + moves + std::fabs(mean) * std::max(of_weights - errors_, 0.0) + slack) / least;
  };
  return rounded(mean, inherited(numerator.error, sum_.error, moved),
                 inherited(numerator.statistical, sum_.statistical, moved_statistical), r.underflow,
                 numerator.may_overflow || sum_.may_overflow, r.unit, r.division);
}

}  // namespace assay
