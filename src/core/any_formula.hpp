// A value that correct kernels compute by either of two formulas.
#pragma once

#include <algorithm>
#include <cmath>

#include "core/bounded.hpp"

namespace assay {

/// Returns x; `other` is the same number by another formula.
template <class T>
T any_formula(const T& x, const T& /*other*/) {
  return x;
}
/// Returns the bound of x that holds for both formulas. If neither is finite and their classes differ, either class is
/// correct.
inline Bounded any_formula(const Bounded& x, const Bounded& other) {
  const bool finite = std::fabs(x.value) <= DBL_MAX, other_finite = std::fabs(other.value) <= DBL_MAX;
  const bool overflows = x.may_overflow || other.may_overflow;
  if (finite && other_finite) {
    const double apart = std::fabs(x.value - other.value);
    return {x.value, std::max(x.error, other.error + apart), std::max(x.statistical, other.statistical + apart),
            overflows};
  }
  if (finite || other_finite) return {x.value, x.error, x.statistical, true};
  const bool same = std::isnan(x.value) ? std::isnan(other.value) : x.value == other.value;
  return {std::isnan(x.value) ? other.value : x.value, 0, 0, overflows || !same};
}

/// Returns whether the kernel declares that it loses this pin of its contract, so that the bound must hold for its
/// formula, too.
template <class T>
bool lost(Loss /*pin*/) {
  return false;
}
template <>
inline bool lost<Bounded>(Loss pin) {
  return current_arithmetic().loses == pin;
}

}  // namespace assay
