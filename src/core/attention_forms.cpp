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

Bounded ScaledDot<Bounded>::value() const {
  const Bounded after = Bounded(scale_ * sum_.value()), before = scaled_.value();
  if (!(std::fabs(after.value) <= DBL_MAX) || !(std::fabs(before.value) <= DBL_MAX)) {
    Bounded either = std::isnan(after.value) ? after : before;
    either.may_overflow = !std::isnan(either.value) && (after.may_overflow || before.may_overflow);
    return either;
  }
  return {after.value, std::max(after.error, before.error), std::max(after.statistical, before.statistical),
          after.may_overflow || before.may_overflow};
}

Bounded factor(const Bounded& x) {
  const Roundings& r = Roundings::current();
  const double magnitude = std::fabs(x.value);
  if (r.of.inputs == Format::f32 || !(magnitude <= DBL_MAX)) return x;
  const auto bound = [&](double e) {
    return finite_or_infinite((e + r.input_unit * std::max(magnitude + e, r.input_floor)) * (1 + kDoubleSlack));
  };
  const double worst = magnitude + x.error > 0 ? bound(x.error) : 0;
  return {x.value, worst, std::min(worst, bound(x.statistical)), x.may_overflow || magnitude + worst > r.input_largest};
}

// In base 2 the constant c is rounded once (alone, or with the scale: once more), and so is shift c; the difference is
// rounded as in base e.
Bounded attention_weight(const Bounded& score, const Bounded& shift, double terms) {
  Bounded argument = score;
  if (std::fabs(score.value) <= DBL_MAX && std::fabs(shift.value) <= DBL_MAX) {
    const double unit = Roundings::current().unit;
    const double beside = unit * (1 + 4 * unit) * (2 * (std::fabs(score.value - shift.value) + score.error) + std::fabs(shift.value));
    argument.error += beside;
    argument.statistical += beside;
  }
  return softmax_term(argument, shift, terms);
}

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

Bounded WeightedMean<Bounded>::value() const {
  const Roundings& r = Roundings::current();
  const double rescalings = r.of.online_tile > 0 ? std::ceil(terms_ / r.of.online_tile) : 0;
  const double shorter = r.of.inputs == Format::f32 ? 0 : r.input_unit;
  const double apart = (1 + shorter) * (1 + r.unit + r.division) * (1 + 2 * rescalings * r.unit * (1 + rescalings * 4 * r.unit)) - 1;
  Sum<Bounded> products, weights;
  bool finite = true;
  double shared = 0;      // sum of e_j |v_j|, which the numerator's error holds
  double of_weights = 0;  // sum of e_j, which the divisor's holds
  for (const auto& [w, v] : pairs_) {
    finite &= std::fabs(w.value) <= DBL_MAX && std::fabs(v.value) <= DBL_MAX && std::isfinite(w.error) && std::isfinite(v.error);
    const double reach = w.value + w.error;
    const double stored = reach > 0 && shorter > 0 ? r.input_floor * shorter : 0;
    const double own = (reach * apart + stored) * (std::fabs(v.value) + v.error) + reach * v.error;
    products += Product{w.value * v.value, w.error * std::fabs(v.value) + own, 0, w.may_overflow || v.may_overflow};
    weights += w;
    shared += w.error * std::fabs(v.value);
    of_weights += w.error;
  }
  if (!finite) {
    Sum<Bounded> plain;
    for (const auto& [w, v] : pairs_) plain += w * v;
    return quotient(plain.value(), weights.value());
  }
  const Bounded numerator = products.value(), divisor = weights.value();
  const double mean = numerator.value / divisor.value;
  double moved = 0, moved_statistical = 0;
  for (const auto& [w, v] : pairs_) {
    moved += w.error * std::fabs(v.value - mean);
    moved_statistical += w.statistical * std::fabs(v.value - mean);
  }
  const double least = divisor.value - divisor.error;
  if (!(least > 0)) return anything();
  const auto inherited = [&](double e_n, double e_d, double s, double weights_, double m) {
    const double slack = kDoubleSlack * (e_n + std::fabs(mean) * e_d);
    return (std::max(e_n - s, 0.0) + m + std::fabs(mean) * std::max(e_d - weights_, 0.0) + slack) / least;
  };
  // The statistical bound of the sums holds the worst case of the weights' errors; what they are likely to be replaces it.
  return rounded(mean, inherited(numerator.error, divisor.error, shared, of_weights, moved),
                 inherited(numerator.statistical, divisor.statistical, shared, of_weights, moved_statistical), r.underflow,
                 numerator.may_overflow || divisor.may_overflow, r.division + r.unit + r.division * r.unit);
}

}  // namespace assay
