// Pairs of vectors whose products each stress a bound in one way.
#pragma once

#include <cmath>
#include <string_view>
#include <vector>

#include "core/shape.hpp"
#include "falsify/engine/random.hpp"

namespace assay::numbers {

using falsify::Random;
using Vector = std::vector<float>;

enum class Distribution { gaussian, same_sign, cancellation, graded, subnormal, huge, stagnating, sparse, tailed };
inline constexpr Distribution kDistributions[] = {
    Distribution::gaussian,   Distribution::same_sign, Distribution::cancellation,
    Distribution::graded,     Distribution::subnormal, Distribution::huge,
    Distribution::stagnating, Distribution::sparse,    Distribution::tailed};
inline std::string_view name(Distribution d) {
  constexpr std::string_view names[] = {"gaussian", "same sign",  "cancellation", "graded", "subnormal",
                                        "huge",     "stagnating", "sparse",       "tailed"};
  return names[static_cast<int>(d)];
}

/// Returns a vector of n elements; `left` selects the first or the second factor.
inline Vector make_vector(Distribution d, bool left, Index n, Random& random) {
  Vector v(static_cast<std::size_t>(n));
  for (std::size_t p = 0; p < v.size(); ++p) {
    const double g = random.gaussian();
    double x = g;
    switch (d) {
      case Distribution::gaussian: break;
      case Distribution::same_sign: x = random.uniform(); break;
      case Distribution::cancellation: x = (left && p % 2 ? -1 : 1) * (1 + std::ldexp(g, -12)); break;
      case Distribution::graded: x = std::ldexp(g, static_cast<int>(random.between(-20, 20))); break;
      case Distribution::subnormal: x = std::ldexp(g, left ? -130 : static_cast<int>(random.between(-16, 4))); break;
      case Distribution::huge: x = std::ldexp(g, left ? 124 : static_cast<int>(random.between(-12, 3))); break;
      // 1 + 2^-24 + 2^-24 + ...: from first to last, rounding to nearest even loses every term: the worst order.
      case Distribution::stagnating: x = left ? 1 : p == 0 ? 1 : 0x1p-24; break;
      case Distribution::sparse: x = left && !random.chance(8.0 / static_cast<double>(n)) ? 0 : g; break;
      // Few large terms, and small ones that change nothing under rounding to nearest, but lower every truncated sum by
      // a unit in its last place.
      case Distribution::tailed:
        x = !left         ? 1
            : p % 64 == 0 ? std::fabs(g)
                          : -std::ldexp(1 + random.uniform(), static_cast<int>(random.between(-64, -60)));
        break;
    }
    v[p] = static_cast<float>(x);
  }
  return v;
}

}  // namespace assay::numbers
