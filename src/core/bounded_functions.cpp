// Functions of Bounded, and the forms that correct kernels evaluate in several ways.
#include <algorithm>

#include "core/rounded.hpp"

namespace assay {

using namespace detail;

Bounded operator/(const Bounded& x, const Bounded& y) { return divided(x, y, Roundings::current().division); }

namespace {

/// f(x) for an increasing or decreasing f: `spread(e)` bounds |f(x + d) - f(x)| for |d| <= e.
template <class Spread>
Bounded function_of(Function which, const Bounded& x, double value, Spread spread, double underflow,
                    bool may_overflow) {
  if (!(std::fabs(value) <= DBL_MAX)) return {value, 0, 0, may_overflow && !std::isnan(value)};
  const Roundings& r = Roundings::current();
  const Accuracy& promised = accuracy(r.of.functions, which);
  const double magnitude = std::fabs(x.value);
  const double narrow = r.of.accumulator == Format::f32 ? 0 : r.unit;  // the result is rounded again
  const auto bound = [&](double e) {
    const double inherited = e > 0 ? spread(e) : 0;
    const double reach = std::fabs(value) + inherited;
    return finite_or_infinite((inherited + (promised.relative(magnitude + e) + narrow) * reach +
                               promised.beside(magnitude) + underflow) *
                              (1 + kDoubleSlack) + kDoubleSlack * reach);
  };
  const double worst = bound(x.error);
  const bool overflows = may_overflow || std::fabs(value) + worst > r.largest;
  if (overflows && r.saturates) return {value, kInfinity, kInfinity, true};
  return {value, worst, std::min(worst, bound(x.statistical)), overflows};
}

}  // namespace

Bounded quotient(const Bounded& x, const Bounded& y) {
  const Roundings& r = Roundings::current();
  Bounded result = divided(x, y, r.division + r.unit);
  // 1 / y may overflow or underflow where x / y does not.
  const double reciprocal = 1 / std::fabs(y.value);
  result.may_overflow |= reciprocal > r.largest;
  const double lost = std::fabs(x.value) * r.underflow;
  result.error += lost;
  result.statistical += lost;
  return result;
}

Bounded reciprocal_sqrt(const Bounded& x) {
  const Roundings& r = Roundings::current();
  // A library's own function, or its square root and its division.
  const double unit = std::max(accuracy(r.of.functions, Function::reciprocal_sqrt).relative(0) + kDoubleSlack,
                               accuracy(r.of.functions, Function::sqrt).relative(0) + r.division + kDoubleSlack);
  const double value = 1 / std::sqrt(x.value);
  const auto inherited = [&](double e) {
    if (!(e > 0)) return 0.0;
    return e < x.value ? 1 / std::sqrt(x.value - e) - value : kInfinity;
  };
  return rounded(value, inherited(x.error), inherited(x.statistical), 0, x.may_overflow || x.value < x.error, unit);
}

Bounded product(const Bounded& a, const Bounded& b, const Bounded& c) {
  const Roundings& r = Roundings::current();
  const Product ab = a * b;
  const Product abc = Bounded(ab.value, ab.error, ab.statistical, ab.may_overflow) * c;
  const auto reach = [](const Bounded& x) { return std::fabs(x.value) + x.error; };
  // Two roundings whatever the order; a factor of two that vanished may be scaled up by the third.
  const double largest_factor = std::max({reach(a), reach(b), reach(c), 1.0});
  const double largest_pair = std::max({reach(a) * reach(b), reach(b) * reach(c), reach(a) * reach(c)});
  return rounded(abc.value, abc.error, abc.statistical, 2 * r.underflow * largest_factor,
                 abc.may_overflow || !(largest_pair <= r.largest), 2 * r.unit + r.unit * r.unit);
}

// sigmoid. s = 1 / (1 + exp(-x)), and let exp err by E relative to its value.
//   - 1 / (1 + exp(-x)): a relative error E of exp(-x) is one of E exp(-x) / (1 + exp(-x)) = E (1 - s) of the divisor.
//   - exp(x) / (1 + exp(x)): numerator and divisor share the error, and (1 + E) / (1 + E s) - 1 <= E (1 - s) / (1 - E).
// Beside it stand the roundings of 1 + exp and of the quotient, a division or a product with the reciprocal: together
// f = E (1 - s) + 2u + division, and a product of factors (1 + d_i) or 1 / (1 + d_i) with sum |d_i| = f is within
// f / (1 - f) of 1. exp and the quotient may each underflow. Where exp(-x) overflows, the quotient is 0: all of s is lost.
// An argument that is off by e moves s by at most s (1 - s) expm1(e), since |d log s'(x) / dx| = |1 - 2s| <= 1.
Bounded sigmoid(const Bounded& x) {
  if (std::isnan(x.value)) return x;
  if (std::isinf(x.value)) return {x.value > 0 ? 1.0 : 0.0, 0, 0, x.may_overflow};
  const Roundings& r = Roundings::current();
  const Accuracy& promised = accuracy(r.of.functions, Function::exp);
  const double power = std::exp(-std::fabs(x.value)), narrow = r.of.accumulator == Format::f32 ? 0 : r.unit;
  const double larger = 1 / (1 + power), smaller = power / (1 + power);
  const double value = x.value < 0 ? smaller : larger, rest = x.value < 0 ? larger : smaller;
  const auto bound = [&](double e) {
    const double by_exp = promised.relative(std::fabs(x.value) + e) + narrow;
    const double f = by_exp * rest + 2 * r.unit + r.division;
    const double inherited = e > 0 ? value * rest * std::expm1(e) : 0;
    const bool overflows = (std::exp(e - x.value) * (1 + by_exp) + 1) * (1 + r.unit) > r.largest;
    const double lost = 2 * r.underflow + (overflows ? value : 0);
    return f < 1 ? finite_or_infinite((inherited + f / (1 - f) * (value + inherited) + lost) * (1 + kDoubleSlack)) : 1;
  };
  const double worst = bound(x.error);
  return {value, worst, std::min(worst, bound(x.statistical)), x.may_overflow};
}

Bounded sigmoid_complement(const Bounded& x) {
  const Bounded mirrored = sigmoid(-x), difference = Bounded(1) - sigmoid(x);
  return {mirrored.value, std::max(mirrored.error, difference.error), std::max(mirrored.statistical, difference.statistical),
          mirrored.may_overflow};
}

Bounded softmax_term(const Bounded& x, const Bounded& maximum, double terms) {
  Bounded term = exp(x - maximum);
  const Roundings& r = Roundings::current();
  if (r.of.online_tile <= 0) return term;
  const double rescalings = std::ceil(terms / r.of.online_tile);
  const double extra = rescalings * ((accuracy(r.of.functions, Function::exp).relative(0) + r.unit) *
                                         (std::fabs(term.value) + term.error) * (1 + rescalings * 4 * r.unit) +
                                     r.underflow);
  term.error += extra;
  term.statistical += extra;
  return term;
}

Bounded stored(DType dtype, const Bounded& x) {
  const bool half = dtype == DType::f16;
  if (!half && dtype != DType::bf16) return x;
  const double magnitude = std::fabs(x.value), unit = half ? 0x1p-11 : 0x1p-8;
  const double largest = half ? 65504 : 0x1.fep127, smallest = half ? 0x1p-14 : 0x1p-126;
  if (!(magnitude <= DBL_MAX)) return x;
  // Half a unit in the last place of what is stored; a flush takes subnormals.
  const double lost = Roundings::current().of.flushes_subnormals ? smallest : unit * smallest;
  const auto bound = [&](double e) { return finite_or_infinite((e + unit * (magnitude + e) + lost) * (1 + kDoubleSlack)); };
  // From half a unit beyond the largest number on, the nearest one is infinite.
  const double limit = largest * (1 + unit / 2);
  if (magnitude - x.error >= limit) return {std::copysign(kInfinity, x.value), 0, 0, x.may_overflow};
  return {x.value, bound(x.error), bound(x.statistical), x.may_overflow || magnitude + x.error >= limit};
}

Bounded sqrt(const Bounded& x) {
  const double root = std::sqrt(x.value);
  // sqrt(v) - sqrt(v - e) = e / (sqrt(v) + sqrt(v - e)): the side that is further away.
  const auto spread = [&](double e) { return e / (root + std::sqrt(std::max(x.value - e, 0.0))); };
  return function_of(Function::sqrt, x, root, spread, 0, x.may_overflow || x.value < x.error);
}

Bounded exp(const Bounded& x) {
  const double power = std::exp(x.value);
  return function_of(Function::exp, x, power, [&](double e) { return power * std::expm1(e); },
                     Roundings::current().underflow, x.may_overflow);
}

Bounded expm1(const Bounded& x) {
  const double less_one = std::expm1(x.value), power = std::exp(x.value);
  return function_of(Function::expm1, x, less_one, [&](double e) { return power * std::expm1(e); },
                     Roundings::current().flush, x.may_overflow);
}

Bounded log(const Bounded& x) {
  const auto spread = [&](double e) { return e < x.value ? -std::log1p(-e / x.value) : kInfinity; };
  return function_of(Function::log, x, std::log(x.value), spread, Roundings::current().flush,
                     x.may_overflow || x.value < x.error);
}

Bounded log1p(const Bounded& x) {
  const double base = 1 + x.value;
  const auto spread = [&](double e) { return e < base ? -std::log1p(-e / base) : kInfinity; };
  return function_of(Function::log1p, x, std::log1p(x.value), spread, Roundings::current().flush,
                     x.may_overflow || base < x.error);
}

Bounded sin(const Bounded& x) {
  return function_of(Function::sin, x, std::sin(x.value), [](double e) { return std::min(e, 2.0); },
                     Roundings::current().flush, x.may_overflow);
}

Bounded cos(const Bounded& x) {
  return function_of(Function::cos, x, std::cos(x.value), [](double e) { return std::min(e, 2.0); },
                     Roundings::current().flush, x.may_overflow);
}

Bounded tanh(const Bounded& x) {
  const double value = std::tanh(x.value);
  // The slope is 1 - tanh^2, largest at the end nearer to zero.
  const auto spread = [&](double e) {
    const double nearer = std::tanh(std::max(std::fabs(x.value) - e, 0.0));
    return std::min(e * (1 - nearer * nearer), 2.0);
  };
  return function_of(Function::tanh, x, value, spread, Roundings::current().flush, x.may_overflow);
}

}  // namespace assay
