// Rounding of a value with inherited errors, shared by the operations of Bounded. Internal to core.
#pragma once

#include <algorithm>

#include "core/bounded.hpp"

namespace assay::detail {

/// Relative error of evaluating a bound in double, with a margin.
inline constexpr double kDoubleSlack = 0x1p-50;
inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

inline double finite_or_infinite(double bound) { return bound <= DBL_MAX ? bound : kInfinity; }

/// Returns `value` with inherited errors, rounded once to `unit` of its binade. Earlier roundings err by `before`,
/// relative to the value.
inline Bounded rounded(double value, double error, double statistical, double underflow, bool may_overflow, double unit,
                       double before = 0) {
  const double magnitude = std::fabs(value);
  if (!(magnitude <= DBL_MAX)) return {value, 0, 0, may_overflow && !std::isnan(value)};
  if (value == 0 && error == 0 && !may_overflow) return {value, 0, 0, false};  // 0 x, x - x: nothing to round
  const Roundings& r = Roundings::current();
  const auto bound = [&](double inherited) {
    const double reach = magnitude + inherited;
    return finite_or_infinite((inherited + before * reach + unit * binade(reach * (1 + before)) + underflow) *
                              (1 + kDoubleSlack));
  };
  const double worst = bound(error);
  const bool overflows = may_overflow || magnitude + worst > r.largest;
  if (overflows && r.saturates) return {value, kInfinity, kInfinity, true};
  return {value, worst, std::min(worst, bound(statistical)), overflows};
}

inline Bounded rounded(double value, double error, double statistical, double underflow, bool may_overflow) {
  return rounded(value, error, statistical, underflow, may_overflow, Roundings::current().unit);
}

/// Returns a bound that accepts every number and every class, for results that rounding alone decides.
inline Bounded anything() { return {0, kInfinity, kInfinity, true}; }

/// Returns x, or no bound if x may leave the range that a NormalRangeScope allows.
inline Bounded in_range(const Bounded& x) {
  return Roundings::current().leaves(std::fabs(x.value), x.error) ? anything() : x;
}

/// Returns whether the accumulator represents the number exactly and no flush affects it.
bool held_exactly(double value, const Roundings& r);

/// Returns whether rounding may make x zero or change its sign or class.
inline bool sign_uncertain(const Bounded& x) { return x.error > 0 && std::fabs(x.value) <= x.error; }

/// Widens x for an argument that may have overflowed to infinity: the function has a finite value there, `distance`
/// away.
inline Bounded reaching(Bounded x, double distance) {
  x.error = std::max(x.error, distance);
  x.statistical = std::max(x.statistical, distance);
  return x;
}

/// Returns x / y; roundings before the last err by `before` (relative), the last by `unit`. (x + dx) / (y + dy) - q =
/// (dx - q dy) / (y + dy) for q = x / y.
inline Bounded divided(const Bounded& x, const Bounded& y, double unit, double before = 0) {
  if (y.value == 0 && (y.error > 0 || (x.value == 0 && x.error > 0))) return anything();
  const double quotient = x.value / y.value, divisor = std::fabs(y.value);
  const bool beyond_double = std::isinf(quotient) && std::isfinite(x.value) && y.value != 0;
  if (beyond_double && !((std::fabs(x.value) - x.error) / (divisor + y.error) > FLT_MAX)) return anything();
  const auto inherited = [&](double ex, double ey) {
    if (ey >= divisor) return ey > 0 ? kInfinity : 0;
    return (ex + std::fabs(quotient) * ey) / (divisor - ey);
  };
  // x / 0 is NaN or an infinity of either sign if x may vanish; x / y vanishes if y may overflow.
  const bool another_class = sign_uncertain(y) || (y.value == 0 && sign_uncertain(x));
  const Bounded result =
      rounded(quotient, inherited(x.error, y.error), inherited(x.statistical, y.statistical),
              Roundings::current().underflow, x.may_overflow || y.may_overflow || another_class, unit, before);
  return in_range(y.may_overflow ? reaching(result, std::fabs(quotient)) : result);
}

}  // namespace assay::detail
