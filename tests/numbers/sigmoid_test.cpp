// The bounds of sigmoid, of x sigmoid(x) and of its derivative hold for every evaluation named in core/forms.hpp, with
// an exp of the largest error that its library allows; a less accurate exp exceeds them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "core/forms.hpp"

namespace assay::numbers::sigmoid_test {
namespace {

/// exp, division and flushing of a library, with errors up to the guaranteed accuracy, times `worse`.
class Machine {
 public:
  Machine(const Arithmetic& arithmetic, double worse) : arithmetic_(arithmetic), worse_(worse) {}

  float exp(float x) {
    return off(std::exp(static_cast<double>(x)),
               accuracy(arithmetic_.functions, Function::exp).relative(std::fabs(x)) - 0x1p-24);
  }
  float divide(float x, float y) {
    return off(static_cast<double>(x) / y, accuracy(arithmetic_.functions, Function::divide).relative(0) - 0x1p-24);
  }
  float operator()(float x) const {
    return arithmetic_.flushes_subnormals && std::fabs(x) < 0x1p-126F ? std::copysign(0.0F, x) : x;
  }

 private:
  /// Applies a relative error, then rounds to nearest: the error is the guaranteed accuracy without that rounding.
  /// Errors at the limit are as likely as others.
  float off(double exact, double relative) {
    const double way = std::clamp(uniform_(random_) * 1.5, -1.0, 1.0);
    return (*this)(static_cast<float>(exact * (1 + worse_ * std::max(relative, 0.0) * way)));
  }

  Arithmetic arithmetic_;
  double worse_;
  std::mt19937_64 random_{7};
  std::uniform_real_distribution<double> uniform_{-1, 1};
};

using Way = float (*)(float, Machine&);

float by_minus_x(float x, Machine& m) { return m.divide(1, 1 + m.exp(-x)); }
float by_x_where_negative(float x, Machine& m) {
  const float power = m.exp(-std::fabs(x));
  return x < 0 ? m.divide(power, 1 + power) : m.divide(1, 1 + power);
}
float by_reciprocal(float x, Machine& m) {
  const float power = m.exp(-std::fabs(x)), larger = m.divide(1, 1 + power);
  return x < 0 ? m(power * larger) : larger;
}
template <Way sigmoid>
float times_x(float x, Machine& m) {
  return m(x * sigmoid(x, m));
}
float quotient_of_x(float x, Machine& m) { return m.divide(x, 1 + m.exp(-x)); }
float numerator_first(float x, Machine& m) {
  const float power = m.exp(-std::fabs(x));
  return m.divide(x < 0 ? m(x * power) : x, 1 + power);
}
template <Way sigmoid>
float factored_slope(float x, Machine& m) {
  const float s = sigmoid(x, m);
  return m(s * m(1 + m(x * (1 - s))));
}
template <Way sigmoid>
float summed_slope(float x, Machine& m) {
  const float s = sigmoid(x, m);
  return m(s + m(m(x * s) * (1 - s)));
}
float mirrored_slope(float x, Machine& m) {
  const float power = m.exp(-std::fabs(x)), larger = m.divide(1, 1 + power), smaller = m(power * larger);
  const float s = x < 0 ? smaller : larger, rest = x < 0 ? larger : smaller;
  return m(std::fma(m(x * s), rest, s));
}

using Formula = Bounded (*)(const Bounded&);
Bounded silu(const Bounded& x) { return x * sigmoid(x); }
Bounded slope(const Bounded& x) {
  const Bounded s = sigmoid(x);
  return s + product(x, s, sigmoid_complement(x));
}
double exact_sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

/// Returns the largest error / bound over arguments from the whole range of exp and beyond.
double worst(Formula bounded, Way way, const Arithmetic& arithmetic, double worse = 1) {
  const ArithmeticScope scope(arithmetic);
  Machine machine(arithmetic, worse);
  std::mt19937_64 random(1);
  std::uniform_real_distribution<float> wide(-110, 110), near(-3, 3), edge(-104.5F, -86);
  double largest = 0;
  for (int i = 0; i < 100000; ++i) {
    const float x = i % 3 == 0 ? wide(random) : i % 3 == 1 ? near(random) : edge(random);
    const Bounded want = bounded(Bounded::input(x));
    const float got = way(x, machine);
    EXPECT_TRUE(std::isfinite(got)) << x;
    const double ratio = std::fabs(static_cast<double>(got) - want.value) / want.error;
    largest = std::max(largest, ratio);
    if (worse == 1 && !(ratio <= 1)) {
      ADD_FAILURE() << fmt::format("x = {:a}: got {}, want {}, {} times the bound", x, got, want.value, ratio);
      break;
    }
  }
  return largest;
}

struct Named {
  const char* name;
  Formula formula;
  Way way;
};
constexpr Named kWays[] = {
    {"1 / (1 + exp(-x))", &sigmoid, &by_minus_x},
    {"exp(x) / (1 + exp(x)) below 0", &sigmoid, &by_x_where_negative},
    {"product with the reciprocal", &sigmoid, &by_reciprocal},
    {"x / (1 + exp(-x))", &silu, &quotient_of_x},
    {"x exp(x) / (1 + exp(x)) below 0", &silu, &numerator_first},
    {"x sigmoid(x)", &silu, &times_x<&by_minus_x>},
    {"x sigmoid(x), both sides", &silu, &times_x<&by_x_where_negative>},
    {"s (1 + x (1 - s))", &slope, &factored_slope<&by_minus_x>},
    {"s (1 + x (1 - s)), both sides", &slope, &factored_slope<&by_x_where_negative>},
    {"s + x s (1 - s)", &slope, &summed_slope<&by_reciprocal>},
    {"s + x s sigmoid(-x)", &slope, &mirrored_slope},
};

Arithmetic of(FunctionLibrary library, bool flushes) { return {.flushes_subnormals = flushes, .functions = library}; }

TEST(Sigmoid, NoNamedWayExceedsItsBound) {
  for (const auto& [library, flushes] : {std::pair{FunctionLibrary::c_library, false},
                                         {FunctionLibrary::highway, false},
                                         {FunctionLibrary::cuda, false},
                                         {FunctionLibrary::vulkan, true}})
    for (const Named& w : kWays)
      fmt::print("{:>10}: {:>32}: largest error / bound {:.3f}\n", name(library), w.name,
                 worst(w.formula, w.way, of(library, flushes)));
}

TEST(Sigmoid, AWorseExpLeavesTheBound) {
  for (const Named& w : kWays) EXPECT_GT(worst(w.formula, w.way, of(FunctionLibrary::cuda, false), 8), 1) << w.name;
}

TEST(Sigmoid, InfinitiesAndNan) {
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(sigmoid(Bounded(infinity, 0, 0, false)).value, 1);
  EXPECT_EQ(sigmoid(Bounded(-infinity, 0, 0, false)).value, 0);
  EXPECT_TRUE(std::isnan(silu(Bounded(-infinity, 0, 0, false)).value));
  EXPECT_FALSE(silu(Bounded(-infinity, 0, 0, false)).may_overflow);
  EXPECT_TRUE(std::isnan(sigmoid(Bounded(std::nan(""), 0, 0, false)).value));
  EXPECT_EQ(sigmoid(2.0), exact_sigmoid(2.0));
}

}  // namespace
}  // namespace assay::numbers::sigmoid_test
