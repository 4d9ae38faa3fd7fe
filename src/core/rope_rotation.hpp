// Cosine and sine of an angle that does not depend on data, for references with every number type.
#pragma once

#include <boost/math/constants/constants.hpp>
#include <cmath>

#include "core/bounded.hpp"
#include "core/digits50.hpp"
#include "core/shape.hpp"

namespace assay {

template <class T>
struct Rotation {
  T cos, sin;
};

/// Returns cosine and sine, reduced by quarter turns in 50 digits, which is accurate for every angle. For Bounded, both
/// err by the current library's promise for an argument that is off by `error`.
template <class T>
Rotation<T> rotation(const Digits50& angle, [[maybe_unused]] double error = 0) {
  const Digits50 quarter = boost::math::constants::half_pi<Digits50>();
  const Digits50 quarters = floor(angle / quarter + Digits50(0.5)), rest = angle - quarters * quarter;
  Rotation<T> r;
  if constexpr (std::is_same_v<T, Digits50>) {
    r = {cos(rest), sin(rest)};
  } else if constexpr (std::is_same_v<T, Bounded>) {
    const Bounded known(static_cast<double>(rest), error, error, false);
    r = {cos(known), sin(known)};
  } else {
    r = {T(std::cos(static_cast<double>(rest))), T(std::sin(static_cast<double>(rest)))};
  }
  switch (static_cast<Index>(quarters) & 3) {
    case 1: return {-r.sin, r.cos};
    case 2: return {-r.cos, -r.sin};
    case 3: return {r.sin, -r.cos};
    default: return r;
  }
}

}  // namespace assay
