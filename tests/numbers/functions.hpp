// Correct float32 evaluations (glibc) of the functions and forms of Bounded, each with its bound.
#pragma once

#include <pmmintrin.h>
#include <xmmintrin.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string_view>
#include <vector>

#include "core/forms.hpp"
#include "core/half.hpp"
#include "falsify/engine/random.hpp"

namespace assay::numbers {

using falsify::derive;
using falsify::Random;

/// A float32 result, and its bound by Bounded.
struct Number {
  float got = 0;
  Bounded want;
};

inline Number exact(float x) { return {x, Bounded::input(x)}; }

/// Returns a float of any magnitude, including subnormals, zeros and infinities.
inline float any_float(Random& random) {
  static constexpr float kSpecial[] = {0.0F,     -0.0F,  FLT_MIN,  -FLT_MIN,  0x1p-149F, FLT_MAX,
                                       -FLT_MAX, 88.72F, 88.73F,   -87.33F,   -103.9F,   -104.1F,
                                       -1.0F,    1.0F,   INFINITY, -INFINITY, NAN,       65519.997F};
  if (random.chance(0.05)) return kSpecial[random.below(std::size(kSpecial))];
  const double significand = random.sign() * (1 + random.uniform());
  if (random.chance(0.5)) return static_cast<float>(std::ldexp(significand, static_cast<int>(random.between(-12, 6))));
  if (random.chance(0.3))
    return static_cast<float>(1 + std::ldexp(significand, static_cast<int>(random.between(-26, 0))));
  return static_cast<float>(std::ldexp(significand, static_cast<int>(random.between(-150, 127))));
}

/// Returns an argument: an exact input, or a sum, a cancelling difference or a product with its error; some overflow
/// float32 on the way.
inline Number argument(Random& random) {
  const float a = any_float(random), b = any_float(random);
  switch (random.below(8)) {
    case 0: return {a + b, Bounded::input(a) + Bounded::input(b)};
    case 1: {
      const float near =
          -a * (1 + std::ldexp(static_cast<float>(random.gaussian()), -static_cast<int>(random.below(24))));
      const Bounded sum = Bounded::input(a) + Bounded::input(b);
      return {(a + b) + near, sum + Bounded::input(near)};
    }
    case 2: return {a * b, Bounded::input(a) * Bounded::input(b)};
    case 3: {  // overflows before it is scaled back
      const auto c = static_cast<float>(std::ldexp(random.gaussian(), -static_cast<int>(random.between(60, 140))));
      const auto large = std::ldexp(1.0F, static_cast<int>(random.between(60, 120)));
      const Bounded product = Bounded::input(large) * Bounded::input(large);
      return {(large * large) * c, product * Bounded::input(c)};
    }
    case 4: {  // zero except for a rounding
      const Bounded product = Bounded::input(a) * Bounded::input(b);
      return {std::fma(a, b, -(a * b)), product - product};
    }
    default: return exact(a);
  }
}

/// One function of one argument, with all ways to compute it.
struct Unary {
  std::string_view name;
  Bounded (*bound)(const Bounded&);
  std::vector<float (*)(float)> ways;
};

inline const std::vector<Unary>& unary_functions() {
  static const std::vector<Unary> table = {
      {"exp", [](const Bounded& x) { return exp(x); }, {[](float x) { return std::exp(x); }}},
      {"expm1", [](const Bounded& x) { return expm1(x); }, {[](float x) { return std::expm1(x); }}},
      {"log", [](const Bounded& x) { return log(x); }, {[](float x) { return std::log(x); }}},
      {"log1p", [](const Bounded& x) { return log1p(x); }, {[](float x) { return std::log1p(x); }}},
      {"sin", [](const Bounded& x) { return sin(x); }, {[](float x) { return std::sin(x); }}},
      {"cos", [](const Bounded& x) { return cos(x); }, {[](float x) { return std::cos(x); }}},
      {"tanh", [](const Bounded& x) { return tanh(x); }, {[](float x) { return std::tanh(x); }}},
      {"sqrt", [](const Bounded& x) { return sqrt(x); }, {[](float x) { return std::sqrt(x); }}},
      {"reciprocal_sqrt",
       [](const Bounded& x) { return reciprocal_sqrt(x); },
       // A root and a division; a library's own function, which may be off by almost one unit.
       {[](float x) { return 1.0F / std::sqrt(x); },
        [](float x) { return static_cast<float>(1 / std::sqrt(static_cast<double>(x))); },
        [](float x) {
          const double root = 1 / std::sqrt(static_cast<double>(x));
          const auto nearest = static_cast<float>(root);
          return static_cast<double>(nearest) > root ? std::nextafter(nearest, 0.0F) : nearest;
        }}},
      {"stored to f16", [](const Bounded& x) { return stored(DType::f16, x); }, {[](float x) {
         return widen(to_half(x));
       }}},
      {"stored to bf16", [](const Bounded& x) { return stored(DType::bf16, x); }, {[](float x) {
         return widen(to_bfloat16(x));
       }}},
  };
  return table;
}

/// A form of two or three arguments.
struct Form {
  std::string_view name;
  Bounded (*bound)(const Bounded&, const Bounded&, const Bounded&);
  std::vector<float (*)(float, float, float)> ways;
};

inline const std::vector<Form>& forms() {
  static const std::vector<Form> table = {
      {"division",
       [](const Bounded& x, const Bounded& y, const Bounded&) { return x / y; },
       {[](float x, float y, float) { return x / y; }}},
      {"quotient",
       [](const Bounded& x, const Bounded& y, const Bounded&) { return quotient(x, y); },
       {[](float x, float y, float) { return x / y; },
        [](float x, float y, float) {
          const volatile float reciprocal = 1.0F / y;
          return x * reciprocal;
        }}},
      {"product",
       [](const Bounded& a, const Bounded& b, const Bounded& c) { return product(a, b, c); },
       {[](float a, float b, float c) { return (a * b) * c; }, [](float a, float b, float c) { return a * (b * c); },
        [](float a, float b, float c) { return (a * c) * b; }}},
  };
  return table;
}

/// Returns one term of an online softmax: exp(x - m) at the running maximum m, rescaled by exp(old - new) at the end of
/// each tile in which the maximum rises. Before the first finite score every term is 0.
inline float online_term(const std::vector<float>& x, std::size_t which, std::size_t tile) {
  float m = -INFINITY, term = 0;
  for (std::size_t from = 0; from < x.size(); from += tile) {
    float next = m;
    for (std::size_t i = from; i < std::min(from + tile, x.size()); ++i) next = std::max(next, x[i]);
    if (next > m) term *= std::exp(m - next);
    m = next;
    if (which >= from && which < from + tile && m > -INFINITY) term = std::exp(x[which] - m);
  }
  return term;
}

}  // namespace assay::numbers
