// Bounds of attention's forms.
//
// Weighted mean. Let w_j be exact weights, v_j values, W = sum w_j, o = sum w_j v_j / W. A kernel computes
// weights w_j + e_j.
// The numerator has further relative roundings of the weights, h_j together: one to the format of factors, one if each
// weight is divided by the sum beforehand, and one for each rescaling, which rounds the sum of weights separately. The
// numerator is
//   N = sum (w_j + e_j)(1 + h_j) v_j + n, the divisor D = sum (w_j + e_j) + d,
// with errors n and d of the sums, roundings of products included. Since sum w_j (v_j - o) = 0,
//   N - o D = sum e_j (v_j - o) + sum (w_j + e_j) h_j v_j + n - o d,
// and N / D - o = (N - o D) / D with D >= W - sum |e_j| - |d|. An error e_j shared by all weights cancels: a common
// relative error gives sum w_j (v_j - o) = 0. The bound takes |v_j - o|, because the signs of e_j are unknown.
//
// Divided beforehand, p_j = w_j / W: underflow in p_j times v_j, and in the products and partial sums of p_j v_j, is
// not divided by W any more, and W can be as large as the number of weights. Merged parts lose this in a quotient and a
// product.
//
// Merged parts. A part P of the keys gives o_P = sum w_j v_j / W_P over its keys, and l_P = log sum exp(score). The
// mean of the parts is sum exp(l_P - l) o_P, l = log sum exp(l_P), divided by the sum of these exp or not. Each l errs
// by the roundings of log_of_sum and by the library's error of log, and log is at most log n. With shift m and term j
// at m - x_j, l_P lies between m - x_j and l <= m + log n, so that |l_P|, |l| and |l_P - l| are at most A = |m| + x_j +
// log n. Each of l_P and l costs 4 u A and the difference u A. Their exp errs by the library's error for an argument of
// that size, and its product is rounded. Without a divisor no error is shared.
#include "core/attention_forms.hpp"

#include <algorithm>

#include "core/rounded.hpp"

namespace assay {

using namespace detail;

// Scaled beforehand, each x is rounded once more: u |x y| for each term, plus the underflow loss times |y|. If both
// factors are scaled by the rounded root of the scale, each is rounded once and inherits the root's error once: 4 u |x
// y|. The underflow loss of either factor is multiplied by the other one, scaled by a root.
Bounded ScaledDot<Bounded>::value() const {
  const Roundings& r = Roundings::current();
  const Bounded sum = sum_.value();
  Bounded dot(scale_ * sum);
  const double scale = std::fabs(scale_.value) + scale_.error;
  const bool overflows =
      !(scale * left_ <= r.largest) || !(scale * magnitude_ * (1 + 4 * count_ * r.unit) <= r.largest);
  if (!(std::fabs(dot.value) <= DBL_MAX)) {
    dot.may_overflow = !std::isnan(dot.value) && (dot.may_overflow || overflows);
    return dot;
  }
  const double underflow = r.underflow * (std::max(1.0, std::sqrt(scale)) * both_ + count_);
  const double root = std::sqrt(scale), roundings = static_cast<double>(static_cast<float>(root)) == root ? 2 : 4;
  const double extra = (1 + r.growth(count_)) * (1 + 8 * r.unit) *
                       (roundings * r.unit * scale * magnitude_ + (magnitude_ > 0 ? underflow + r.flush * count_ : 0));
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

// In base 2 the constant c is rounded once (once more if combined with the scale), and so is shift c. The difference is
// rounded as in base e.
Bounded in_either_base(const Bounded& score, const Bounded& shift) {
  Bounded argument = score;
  if (std::fabs(score.value) <= DBL_MAX && std::fabs(shift.value) <= DBL_MAX) {
    const Roundings& r = Roundings::current();
    const double beside =
        r.unit * (1 + 4 * r.unit) *
            (2 * (std::fabs(score.value - shift.value) + score.error + r.stale()) + std::fabs(shift.value)) +
        (r.narrow ? 4 * r.underflow : 0);
    argument.error += beside;
    argument.statistical += beside;
  }
  return argument;
}

}  // namespace

Bounded attention_weight(const Bounded& score, const Bounded& shift, double rescalings) {
  return softmax_term(in_either_base(score, shift), shift, rescalings);
}

// Weight for a saved, rounded logsumexp: scores may exceed it, and powers overflow.
Bounded attention_weight(const Bounded& score, const Bounded& shift) {
  return exp(in_either_base(score, shift) - shift);
}

// shift c is rounded, and so is its sum with log2. The product with 1 / c costs the constant's rounding and its own. A
// shift of up to L below the maximum enlarges the logarithm by L.
Bounded log_of_sum(const Bounded& shift, const Bounded& sum) {
  const Bounded logarithm = log(sum);
  Bounded result = shift + logarithm;
  if (!(std::fabs(result.value) <= DBL_MAX)) return result;
  const Roundings& r = Roundings::current();
  const double unit = r.unit, stale = r.stale();
  const double beside = unit * (1 + 4 * unit) *
                            (std::fabs(shift.value) + std::fabs(logarithm.value) + logarithm.error +
                             2 * (std::fabs(result.value) + result.error) + 3 * stale) +
                        accuracy(r.of.functions, Function::log).relative(0) * stale + (r.narrow ? 4 * r.underflow : 0);
  result.error += beside;
  result.statistical += beside;
  return result;
}

Bounded without_weight(double value, const Bounded& weight) {
  return weight.may_overflow ? anything() : Bounded(value);
}

// Parts p = 1 .. K with logsumexps l_p are merged one after another, or all at once. Each l_p errs by the rounding of
// its shift and of its sum with a logarithm: 2 u reach and the logarithm's error. Each merge stores L_k =
// log(exp(L_(k-1)) + exp(l_k)) + rho_k with |rho_k| <= u reach and a logarithm's error, and takes exp(L_(k-1) - L_k)
// with a rounded difference, u reach, one exponential, one sum, one quotient and one product. The weight of a part is
// the product of all these. The L_k cancel in it except for their rho_k: K of them, and another K in L_K itself. A part
// holds at least as many terms as lie between two rescalings.
double merging_error(double shift, double below, double n) {
  const Roundings& r = Roundings::current();
  if (!r.of.merges_parts) return 0;
  const double logarithm = std::log(std::max(n, 1.0)), reach = std::fabs(shift) + below + logarithm + r.stale();
  const Accuracy &log = accuracy(r.of.functions, Function::log), &exp = accuracy(r.of.functions, Function::exp);
  const double merges = std::ceil(std::max(n, 1.0) / std::max(r.of.online_tile, 1));
  const double argument = (3 * merges + 4) * r.unit * reach +
                          2 * (merges + 1) * (log.relative(0) * logarithm + log.beside(0, n) + log.smallest());
  return (std::expm1(argument + merges * (exp.relative(below + logarithm) + 3 * r.unit))) * (1 + 0x1p-10);
}

WeightedMean<Bounded>::WeightedMean(View<const Bounded> weights, const Bounded& shift) {
  const Roundings& r = Roundings::current();
  const double n = static_cast<double>(weights.size());
  const double shorter = r.of.inputs == Format::f32 ? 0 : r.input_unit;
  const Rescalings<Bounded> rescaled(weights.size(), weights);  // weights are in the order of their scores
  Sum<Bounded> sum;
  for (Index j = 0; j < weights.size(); ++j) {
    Bounded w = weights(j);
    const double merging = r.of.merges_parts && w.value > 0 ? merging_error(shift.value, -std::log(w.value), n) : 0;
    w.error += merging * (w.value + w.error);
    w.statistical += merging * (w.value + w.statistical);
    const double reach = w.value + w.error, rescalings = rescaled.of(w);
    const double apart =
        merging +
        (1 + shorter) * (1 + r.unit + r.division) * (1 + 2 * rescalings * r.unit * (1 + rescalings * 4 * r.unit)) - 1;
    // The product with a value is rounded too, after the roundings of the weight.
    const double own = reach * (apart + r.unit * (1 + apart));
    weights_.push_back({w, own, reach > 0 ? shorter * r.input_floor : 0});
    sum += w;
    errors_ += w.error;
    finite_ &=
        std::fabs(w.value) <= DBL_MAX && std::isfinite(w.error) && !(shorter > 0 && r.leaves_inputs(w.value, w.error));
  }
  sum_ = sum.value();
}

Bounded WeightedMean<Bounded>::mean() const {
  const Roundings& r = Roundings::current();
  Terms terms;
  bool finite = finite_;
  double shared = 0;      // sum of e_j |v_j|, which the numerator's error includes
  double beforehand = 0;  // underflow in weights divided beforehand, and in their products
  for (std::size_t j = 0; j < weights_.size(); ++j) {
    const auto& [w, own, stored] = weights_[j];
    const Bounded& v = values_[j];
    const double size = std::fabs(v.value), term = w.value * v.value;
    finite &= size <= DBL_MAX && std::isfinite(v.error);
    terms.add(term,
              w.error * size + (own + stored) * (size + v.error) + (w.value + w.error) * v.error +
                  (size > 0 ? r.underflow : 0),
              w.may_overflow || v.may_overflow);
    if (r.aligned_floor > 0) terms.align(w.value + w.error, size + v.error, r.aligned_floor, term);
    shared += w.error * size;
    if (w.value + w.error > 0 && size + v.error > 0) beforehand += r.underflow * (size + v.error + 2) + r.flush / 2;
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
  // The bounds of both sums include the weights' errors in full. `moves` replaces these errors.
  const auto inherited = [&](double of_products, double of_weights, double moves) {
    const double slack = 4 * kDoubleSlack * (of_products + std::fabs(mean) * of_weights);
    return (std::max(of_products - shared, 0.0) + moves + std::fabs(mean) * std::max(of_weights - errors_, 0.0) +
            slack) /
           least;
  };
  return rounded(
      mean, inherited(numerator.error, sum_.error, moved),
      inherited(numerator.statistical, sum_.statistical, moved_statistical),
      r.underflow + beforehand * (1 + 2 * r.growth(terms.count)),
      numerator.may_overflow || sum_.may_overflow || !(std::ldexp(terms.magnitude, r.of.lazy_rescaling) <= r.largest),
      r.unit, r.division);
}

}  // namespace assay
