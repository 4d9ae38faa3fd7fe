// What the operations of Bounded share: one rounding of a value with inherited errors. Internal to core.
#pragma once

#include <algorithm>

#include "core/bounded.hpp"

namespace assay::detail {

/// Relative error of evaluating a bound in double, times a few.
inline constexpr double kDoubleSlack = 0x1p-50;
inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

inline double finite_or_infinite(double bound) { return bound <= DBL_MAX ? bound : kInfinity; }

/// `value` with inherited errors, rounded once.
inline Bounded rounded(double value, double error, double statistical, double underflow, bool may_overflow, double unit) {
  const double magnitude = std::fabs(value);
  if (!(magnitude <= DBL_MAX)) return {value, 0, 0, may_overflow && !std::isnan(value)};
  const Roundings& r = Roundings::current();
  const auto bound = [&](double inherited) {
    return finite_or_infinite((inherited + unit * (magnitude + inherited) + underflow) * (1 + kDoubleSlack));
  };
  const double worst = bound(error);
  const bool overflows = may_overflow || magnitude + worst > r.largest;
  if (overflows && r.saturates) return {value, kInfinity, kInfinity, true};
  return {value, worst, std::min(worst, bound(statistical)), overflows};
}

inline Bounded rounded(double value, double error, double statistical, double underflow, bool may_overflow) {
  return rounded(value, error, statistical, underflow, may_overflow, Roundings::current().unit);
}

/// x is zero or infinite by rounding alone: another sign or class is possible.
inline bool sign_uncertain(const Bounded& x) { return x.error > 0 && std::fabs(x.value) <= x.error; }

/// x / y with `unit` for all roundings of the division.
inline Bounded divided(const Bounded& x, const Bounded& y, double unit) {
  const double quotient = x.value / y.value, divisor = std::fabs(y.value);
  const auto inherited = [&](double ex, double ey) {
    if (ey >= divisor) return ey > 0 ? kInfinity : 0;
    return (ex + std::fabs(quotient) * ey) / (divisor - ey);
  };
  return rounded(quotient, inherited(x.error, y.error), inherited(x.statistical, y.statistical),
                 Roundings::current().underflow, x.may_overflow || y.may_overflow || sign_uncertain(y), unit);
}

}  // namespace assay::detail
