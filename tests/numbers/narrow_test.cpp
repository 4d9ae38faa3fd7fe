// A result that is subnormal in a narrow accumulator's format may lose half of its last place in any computation.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string_view>
#include <vector>

#include "core/forms.hpp"
#include "core/half.hpp"
#include "falsify/engine/random.hpp"

namespace assay::numbers::narrow_test {
namespace {

using falsify::Random;
using Floats = std::vector<float>;
using Bounds = std::vector<Bounded>;

float half(float x) { return widen(to_half(x)); }

struct Computation {
  std::string_view name;
  std::function<float(const Floats&)> computed;  ///< in binary16
  std::function<Bounded(const Bounds&)> bound;
};

const Computation kComputations[] = {
    {"sum of values",
     [](const Floats& x) {
       float sum = 0;
       for (const float v : x) sum = half(sum + v);
       return sum;
     },
     [](const Bounds& x) {
       Sum<Bounded> sum;
       for (const Bounded& v : x) sum += v;
       return sum.value();
     }},
    {"one value", [](const Floats& x) { return half(x[0]); },
     [](const Bounds& x) {
       Sum<Bounded> sum;
       sum += x[0];
       return sum.value();
     }},
    {"sum of products",
     [](const Floats& x) {
       float sum = 0;
       for (std::size_t i = 0; i + 1 < x.size(); i += 2) sum = half(std::fma(x[i], x[i + 1], sum));
       return sum;
     },
     [](const Bounds& x) {
       Sum<Bounded> sum;
       for (std::size_t i = 0; i + 1 < x.size(); i += 2) sum += x[i] * x[i + 1];
       return sum.value();
     }},
    {"sum of two", [](const Floats& x) { return half(x[0] + x[1]); }, [](const Bounds& x) { return x[0] + x[1]; }},
    {"product", [](const Floats& x) { return half(x[0] * x[1]); },
     [](const Bounds& x) { return Bounded(x[0] * x[1]); }},
    {"quotient", [](const Floats& x) { return half(x[0] / x[1]); }, [](const Bounds& x) { return x[0] / x[1]; }},
    {"square root", [](const Floats& x) { return half(std::sqrt(std::fabs(x[0]))); },
     [](const Bounds& x) { return sqrt(Bounded(std::fabs(x[0].value), x[0].error, x[0].statistical, false)); }},
    {"power", [](const Floats& x) { return half(std::exp(half(1000 * x[0]))); },
     [](const Bounds& x) { return exp(Bounded(Bounded(1000.0) * x[0])); }},
};

TEST(NarrowAccumulator, SubnormalResultsAreWithinTheirBounds) {
  const ArithmeticScope scope({.accumulator = Format::f16});
  for (const Computation& c : kComputations) {
    Random random(falsify::derive(1, c.name));
    double worst = 0;
    for (int trial = 0; trial < 20'000; ++trial) {
      const int exponent = static_cast<int>(random.between(-26, -4));
      Floats x;
      Bounds bounds;
      for (int i = 0; i < 8; ++i) {
        x.push_back(static_cast<float>(std::ldexp(random.gaussian(), exponent)));
        bounds.push_back(Bounded::input(x.back()));
      }
      const float got = c.computed(x);
      const Bounded want = c.bound(bounds);
      if (want.may_overflow || !std::isfinite(want.value)) continue;
      const double off = std::fabs(got - want.value);
      ASSERT_LE(off, want.error) << c.name << ": got " << got << ", want " << want.value << " of " << x[0] << ", "
                                 << x[1];
      if (off > 0) worst = std::max(worst, off / want.error);
    }
    fmt::print("{:>16}: largest error / bound {:.3f}\n", c.name, worst);
    EXPECT_GT(worst, 0.2) << c.name;
  }
}

}  // namespace
}  // namespace assay::numbers::narrow_test
