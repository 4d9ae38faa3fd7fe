// Functions of Bounded, and formulas that correct kernels evaluate in several ways.
#include <algorithm>
#include <functional>

#include "core/forms.hpp"
#include "core/half.hpp"
#include "core/rounded.hpp"

namespace assay {

using namespace detail;

Bounded operator/(const Bounded& x, const Bounded& y) { return divided(x, y, Roundings::current().division); }

namespace {

bool same_class(double x, double y) { return std::isnan(x) ? std::isnan(y) : x == y; }

/// Returns the bound of f(x); `spread(e)` bounds |f(x + d) - f(x)| for |d| <= e, where defined. The error is the
/// propagated error of the argument plus the library's promised units in the last place of the largest value in reach:
/// 2^-23 of its binade for normal values and 2^-149 for subnormal ones. A library that counts floats between its result
/// and the float nearest to f(x) may step into the next binade, where floats are twice as far apart; the value here
/// does so too. If f(x) is not finite but has another class at an end of the argument's interval, rounding decides.
template <class F, class Spread>
Bounded function_of(Function which, const Bounded& x, F f, Spread spread, bool may_overflow) {
  const double value = f(x.value);
  if (!(std::fabs(value) <= DBL_MAX)) {
    const bool certain = !(x.error > 0) || !std::isfinite(x.value) ||
                         (same_class(f(x.value - x.error), value) && same_class(f(x.value + x.error), value));
    return certain ? Bounded(value, 0, 0, may_overflow && !std::isnan(value)) : anything();
  }
  const Roundings& r = Roundings::current();
  const Accuracy& promised = accuracy(r.of.functions, which);
  const double magnitude = std::fabs(x.value);
  const double narrow = r.narrow ? r.unit : 0;  // the result is rounded again
  const double smallest = std::max(r.flush, promised.smallest()) + (r.narrow ? r.underflow : 0);
  const auto bound = [&](double e) {
    const double inherited = e > 0 ? spread(e) : 0;
    const double reach = std::fabs(value) + inherited;
    const double own = reach > 0 ? promised.within(magnitude + e, reach) + narrow * reach : 0;
    return finite_or_infinite((inherited + own + promised.beside(magnitude - e, magnitude + e) + smallest) *
                                  (1 + kDoubleSlack) +
                              kDoubleSlack * reach);
  };
  const double worst = bound(x.error);
  const bool overflows = may_overflow || std::fabs(value) + worst > r.largest;
  if (overflows && r.saturates) return {value, kInfinity, kInfinity, true};
  const Bounded result(value, worst, std::min(worst, bound(x.statistical)), overflows);
  return value == 0 ? result : in_range(result);  // log(1), and values that certainly vanish
}

/// Returns the bound of a function whose argument may have overflowed to either infinity: `least` is a possible value,
/// too.
Bounded reached_from_below(const Bounded& x, double least) {
  if (std::isinf(x.value)) return anything();
  return reaching(x, x.value - least);
}

/// Returns exp(x) expm1(e), the larger of exp(x + e) - exp(x) and exp(x) - exp(x - e).
double exp_spread(double x, double e) { return e < 1 ? std::exp(x) * std::expm1(e) : std::exp(x + e); }

}  // namespace

Bounded quotient(const Bounded& x, const Bounded& y) {
  const Roundings& r = Roundings::current();
  Bounded result = divided(x, y, r.unit, r.division);
  // 1 / y may overflow or vanish although x / y does neither: its loss is then multiplied by |x|.
  const double smallest = 1 / (std::fabs(y.value) + y.error), largest = 1 / std::max(std::fabs(y.value) - y.error, 0.0);
  const bool vanishes = smallest * (1 - r.division) < r.flush;
  result.may_overflow |= largest * (1 + r.division) > r.largest || (vanishes && std::isinf(x.value));
  if (smallest < r.least) return anything();
  const double lost = vanishes || smallest < FLT_MIN ? (std::fabs(x.value) + x.error) * r.underflow * (1 + r.unit) : 0;
  result.error += lost;
  result.statistical += lost;
  return result;
}

Bounded reciprocal_sqrt(const Bounded& x) {
  const Roundings& r = Roundings::current();
  const auto f = [](double v) { return 1 / std::sqrt(v); };
  const double value = f(x.value);
  if (!(std::fabs(value) <= DBL_MAX) && x.error > 0 && x.value + x.error >= 0) return anything();
  // Either a library's own function, or its square root and its division. The function's error in excess of one
  // division stands for the root.
  const double by_root = accuracy(r.of.functions, Function::sqrt).relative(0);
  const double root = std::max(by_root * (1 + 2 * by_root),
                               accuracy(r.of.functions, Function::reciprocal_sqrt).relative(0) - r.division);
  const auto inherited = [&](double e) {
    if (!(e > 0)) return 0.0;
    return e < x.value ? f(x.value - e) - value : kInfinity;
  };
  const Bounded result = rounded(value, inherited(x.error), inherited(x.statistical), 0,
                                 x.may_overflow || x.value < x.error, r.division, root + kDoubleSlack);
  return x.may_overflow ? reaching(result, std::fabs(value)) : result;
}

Bounded product(const Bounded& a, const Bounded& b, const Bounded& c) {
  const Roundings& r = Roundings::current();
  const Product ab = a * b;
  const Product abc = Bounded(ab.value, ab.error, ab.statistical, ab.may_overflow) * c;
  const auto reach = [](const Bounded& x) { return std::fabs(x.value) + x.error; };
  const double pairs[] = {reach(a) * reach(b), reach(b) * reach(c), reach(a) * reach(c)};
  // If one factor is infinite, the product is infinite in every order, unless the two other factors vanish first.
  if (!(std::fabs(abc.value) <= DBL_MAX))
    return {abc.value, 0, 0,
            !std::isnan(abc.value) && (abc.may_overflow || *std::min_element(pairs, pairs + 3) < FLT_MIN)};
  if (reach(a) > 0 && reach(b) > 0 && reach(c) > 0 && *std::min_element(pairs, pairs + 3) < r.least) return anything();
  // Two roundings in any order. The underflow loss of the first product is scaled by the third factor.
  const double largest_factor = std::max({reach(a), reach(b), reach(c)});
  return in_range(rounded(abc.value, abc.error, abc.statistical, r.underflow * (1 + largest_factor * (1 + r.unit)),
                          abc.may_overflow || !(*std::max_element(pairs, pairs + 3) <= r.largest), r.unit, r.unit));
}

// sigmoid. s = 1 / (1 + exp(-x)), and let exp err by E relative to its value.
//   - 1 / (1 + exp(-x)): a relative error E of exp(-x) is one of E exp(-x) / (1 + exp(-x)) = E (1 - s) of the divisor.
//   - exp(x) / (1 + exp(x)): numerator and divisor share the error, and (1 + E) / (1 + E s) - 1 <= E (1 - s) / (1 - E).
// The roundings of 1 + exp and of the quotient (a division, or a product with the reciprocal) add to this: together E
// (1 - s) + u + division, and a last u of the binade for a product. A product of factors (1 + d_i) or 1 / (1 + d_i)
// with sum |d_i| = f is within f / (1 - f) of 1, and f = E (1 - s) + u + division. exp and the quotient may each
// underflow. If exp(-x) overflows, the quotient is 0: all of s is lost.
// An argument that is off by e moves s by at most s (1 - s) expm1(e), since |d log s'(x) / dx| = |1 - 2s| <= 1.
Bounded sigmoid(const Bounded& x) {
  if (std::isnan(x.value)) return x;
  if (std::isinf(x.value)) {
    const double at = x.value > 0 ? 1 : 0, reach = x.may_overflow ? 1 : 0;  // either infinity
    return {at, reach, reach, x.may_overflow};
  }
  const Roundings& r = Roundings::current();
  const Accuracy& promised = accuracy(r.of.functions, Function::exp);
  const double power = std::exp(-std::fabs(x.value)), narrow = r.narrow ? r.unit : 0;
  const double larger = 1 / (1 + power), smaller = power / (1 + power);
  const double value = x.value < 0 ? smaller : larger, rest = x.value < 0 ? larger : smaller;
  if (power < r.least) return anything();
  const auto bound = [&](double e) {
    const double by_exp = promised.relative(std::fabs(x.value) + e) + narrow;
    const double f = by_exp * rest + r.unit + r.division;
    const double inherited = e > 0 ? value * rest * std::expm1(e) : 0;
    const bool overflows = (std::exp(e - x.value) * (1 + by_exp) + 1) * (1 + r.unit) > r.largest;
    const double lost = 2 * r.underflow + (overflows ? value : 0);
    const double reach = value + inherited;
    return f < 1 ? finite_or_infinite((inherited + f / (1 - f) * reach + r.unit * binade(reach / (1 - f)) + lost) *
                                      (1 + kDoubleSlack))
                 : 1;
  };
  const double worst = bound(x.error);
  const Bounded result(value, worst, std::min(worst, bound(x.statistical)), x.may_overflow);
  return x.may_overflow ? reaching(result, 1) : result;  // 0 and 1 of infinities
}

Bounded sigmoid_complement(const Bounded& x) {
  const Bounded mirrored = sigmoid(-x), difference = Bounded(1) - sigmoid(x);
  return {mirrored.value, std::max(mirrored.error, difference.error),
          std::max(mirrored.statistical, difference.statistical), mirrored.may_overflow};
}

// A running sum is rescaled when its maximum grows to a number above all terms seen before. Hence a term is rescaled at
// most once for each other term above it, and at most once per tile. If the maximum stays, the factor is exp(0), which
// changes nothing if the library gives exactly 1. Errors alone can place one term above another.
Rescalings<Bounded>::Rescalings(std::vector<Bounded> terms) : most_(most(terms.size())) {
  const Accuracy* const promised = detail::find_accuracy(Roundings::current().of.functions, Function::exp);
  if (most_ == 0 || promised == nullptr || !promised->exact_at_zero) return;
  counted_ = true;
  for (const Bounded& term : terms)
    if (!std::isnan(term.value)) reaches_.push_back(term.may_overflow ? kInfinity : term.value + term.error);
  const auto kept = std::min(reaches_.size(), static_cast<std::size_t>(most_) + 1);
  std::ranges::partial_sort(reaches_, reaches_.begin() + static_cast<std::ptrdiff_t>(kept), std::greater<>());
  reaches_.resize(kept);
}

double Rescalings<Bounded>::most(std::size_t terms) {
  const int tile = Roundings::current().of.online_tile;
  return tile > 0 ? std::ceil(static_cast<double>(terms) / tile) : 0;
}

double Rescalings<Bounded>::of(const Bounded& term) const {
  if (!counted_ || term.may_overflow) return most_;
  const double least = term.value - term.error;
  const auto above = std::ranges::lower_bound(reaches_, least, std::greater<>()) - reaches_.begin();
  return std::min(most_, static_cast<double>(above) - (term.value + term.error > least));  // a term is not above itself
}

// A shift of up to L below the maximum scales all weights by one factor, which cancels. The argument then errs by a
// rounding of L in addition, and a library error that grows with the argument grows by that of L.
Bounded softmax_term(const Bounded& x, const Bounded& maximum, double rescalings) {
  const Roundings& r = Roundings::current();
  Bounded argument = x - maximum;
  if (r.of.online_tile > 0 && std::fabs(argument.value) <= DBL_MAX) {  // parts round even if x - maximum is exact
    const Accuracy& promised = accuracy(r.of.functions, Function::exp);
    const double stale = promised.relative(r.stale()) - promised.relative(0);
    const auto in_parts = [&](double e) {
      return (e + r.unit * (std::fabs(argument.value) + e + r.stale()) + stale) * (1 + kDoubleSlack);
    };
    argument.error = std::max(argument.error, in_parts(x.error + maximum.error));
    argument.statistical = std::max(argument.statistical, in_parts(x.statistical + maximum.statistical));
  }
  Bounded term = exp(argument);
  // x <= maximum: if the difference overflows, it overflows to -inf, and exp gives 0 for both.
  if (std::isfinite(x.value) && std::isfinite(maximum.value))
    term.may_overflow = x.may_overflow || maximum.may_overflow;
  if (rescalings <= 0) return term;
  const double extra = rescalings * ((accuracy(r.of.functions, Function::exp).relative(0) + r.unit) *
                                         (std::fabs(term.value) + term.error) * (1 + rescalings * 4 * r.unit) +
                                     r.underflow);
  term.error += extra;
  term.statistical += extra;
  return term;
}

Bounded scaled_difference(const Bounded& r, const Bounded& a, const Bounded& b) {
  Bounded before = r * (a - b);
  const Bounded after = Bounded(r * a) - Bounded(r * b);
  if (!(std::fabs(before.value) <= DBL_MAX)) {
    before.may_overflow |= after.may_overflow || std::isnan(after.value) != std::isnan(before.value);  // inf - inf
    return before;
  }
  return {before.value, std::max(before.error, after.error), std::max(before.statistical, after.statistical),
          before.may_overflow || after.may_overflow};
}

Bounded stored(DType dtype, const Bounded& x) {
  const bool half = dtype == DType::f16;
  if ((!half && dtype != DType::bf16) || x.empty) return x;
  const double magnitude = std::fabs(x.value), unit = half ? 0x1p-11 : 0x1p-8;
  const double largest = half ? 65504 : 0x1.fep127, smallest = half ? 0x1p-14 : 0x1p-126;
  if (!(magnitude <= DBL_MAX)) return x;
  // Half a unit in the last place of the stored value (for subnormals, of the smallest normal number), and what a flush
  // loses.
  const double lost = Roundings::current().of.flushed_below(smallest);
  const auto bound = [&](double e) {
    return finite_or_infinite((e + unit * binade(std::max(magnitude + e, smallest)) + lost) * (1 + kDoubleSlack));
  };
  // Numbers of at least half a unit beyond the largest number round to infinity: 65520 of f16.
  const double limit = largest + std::ldexp(unit, std::ilogb(largest));
  if (magnitude - x.error >= limit) return {std::copysign(kInfinity, x.value), 0, 0, x.may_overflow};
  if (Roundings::current().least > 0 && magnitude + x.error > 0 && !(magnitude - x.error >= smallest))
    return anything();
  // A number that every machine holds exactly has one nearest stored number.
  if (x.error == 0 && !x.may_overflow && static_cast<double>(static_cast<float>(x.value)) == x.value &&
      magnitude >= lost) {
    const double off = std::fabs(stored(dtype, static_cast<float>(x.value)) - x.value);
    return {x.value, off, off, magnitude >= limit};
  }
  return {x.value, bound(x.error), bound(x.statistical), x.may_overflow || magnitude + x.error >= limit};
}

Bounded sqrt(const Bounded& x) {
  const double root = std::sqrt(x.value);
  // Below x: sqrt(v) - sqrt(v - e) = e / (sqrt(v) + sqrt(v - e)). This side is further away, unless zero is nearer.
  const auto spread = [&](double e) {
    if (e <= x.value) return e / (root + std::sqrt(x.value - e));
    return std::max(root, std::sqrt(x.value + e) - root);
  };
  return function_of(
      Function::sqrt, x, [](double v) { return std::sqrt(v); }, spread, x.may_overflow || x.value < x.error);
}

Bounded exp(const Bounded& x) {
  const auto f = [](double v) { return std::exp(v); };
  const Bounded power = function_of(
      Function::exp, x, f, [&](double e) { return exp_spread(x.value, e); }, x.may_overflow);
  return x.may_overflow ? reached_from_below(power, 0) : power;  // exp(-inf) = 0
}

Bounded expm1(const Bounded& x) {
  const auto f = [](double v) { return std::expm1(v); };
  const Bounded less_one = function_of(
      Function::expm1, x, f, [&](double e) { return exp_spread(x.value, e); }, x.may_overflow);
  return x.may_overflow ? reached_from_below(less_one, -1) : less_one;  // expm1(-inf) = -1
}

Bounded log(const Bounded& x) {
  const auto spread = [&](double e) { return e < x.value ? -std::log1p(-e / x.value) : kInfinity; };
  return function_of(
      Function::log, x, [](double v) { return std::log(v); }, spread, x.may_overflow || x.value < x.error);
}

Bounded log1p(const Bounded& x) {
  const double base = 1 + x.value;
  const auto spread = [&](double e) { return e < base ? -std::log1p(-e / base) : kInfinity; };
  return function_of(
      Function::log1p, x, [](double v) { return std::log1p(v); }, spread, x.may_overflow || base < x.error);
}

Bounded sin(const Bounded& x) {
  const auto spread = [](double e) { return std::min(e, 2.0); };
  return function_of(
      Function::sin, x, [](double v) { return std::sin(v); }, spread, x.may_overflow);
}

Bounded cos(const Bounded& x) {
  const auto spread = [](double e) { return std::min(e, 2.0); };
  return function_of(
      Function::cos, x, [](double v) { return std::cos(v); }, spread, x.may_overflow);
}

Bounded tanh(const Bounded& x) {
  // The slope is 1 - tanh^2, largest at the end of the interval nearer to zero.
  const auto spread = [&](double e) {
    const double nearer = std::tanh(std::max(std::fabs(x.value) - e, 0.0));
    return std::min(e * (1 - nearer * nearer), 2.0);
  };
  const Bounded t = function_of(
      Function::tanh, x, [](double v) { return std::tanh(v); }, spread, x.may_overflow);
  return x.may_overflow ? reaching(t, 2) : t;  // tanh of either infinity is 1 or -1
}

}  // namespace assay
