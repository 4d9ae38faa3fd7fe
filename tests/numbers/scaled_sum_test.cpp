// The bound of ScaledSum covers every place where a correct kernel may multiply by the factor, in one sum or two; the
// bound of two plain sums does not.
#include "core/scaled_sum.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace assay::numbers::scaled_sum_test {
namespace {

struct Instance {
  float plain, factor;
  std::vector<float> a, b;
};

Instance draw(std::mt19937& random) {
  std::normal_distribution<float> normal;
  Instance x{std::exp2(normal(random) * 4), std::exp2(normal(random) * 4), {}, {}};
  const int terms = std::uniform_int_distribution(1, 9)(random);
  for (int i = 0; i < terms; ++i) x.a.push_back(normal(random)), x.b.push_back(normal(random));
  // Products that cancel expose roundings from before the cancellation.
  if (terms % 2 == 0)
    for (std::size_t i = 1; i < x.a.size(); i += 2) x.a[i] = -x.a[i - 1], x.b[i] = x.b[i - 1] * (1 + 0x1p-20f);
  return x;
}

/// Evaluates the sum with the factor applied in one of five places, or with all terms added to the plain sum in turn.
float evaluated(const Instance& x, int place) {
  float sum = place == 5 ? x.plain : 0;
  for (std::size_t i = 0; i < x.a.size(); ++i) {
    const float a = place == 1 || place == 5 ? x.factor * x.a[i] : x.a[i], b = place == 2 ? x.factor * x.b[i] : x.b[i];
    if (place == 3) sum += x.factor * (a * b);
    else if (place == 4) sum = std::fma(a, b, sum);
    else sum += a * b;
  }
  if (place == 0) return x.plain + x.factor * sum;
  if (place == 4) return std::fma(x.factor, sum, x.plain);
  if (place == 5) return sum;
  return x.plain + sum;
}

TEST(ScaledSum, BoundsTheFactorWhereverItIsApplied) {
  std::mt19937 random(1);
  double worst = 0, worst_of_nested = 0;
  for (int round = 0; round < 200000; ++round) {
    const Instance x = draw(random);
    const Bounded factor = Bounded::input(x.factor), plain = Bounded::input(x.plain);
    ScaledSum<Bounded> sum(factor);
    Sum<Bounded> products;
    sum += plain;
    for (std::size_t i = 0; i < x.a.size(); ++i) {
      sum.scaled(Bounded::input(x.a[i]), Bounded::input(x.b[i]));
      products += Bounded::input(x.a[i]) * Bounded::input(x.b[i]);
    }
    const Bounded all = sum.value(), nested = plain + Bounded(factor * products.value());
    for (int place = 0; place < 6; ++place) {
      const double off = std::fabs(evaluated(x, place) - all.value);
      worst = std::max(worst, off / all.error);
      worst_of_nested = std::max(worst_of_nested, off / nested.error);
    }
  }
  EXPECT_LE(worst, 1);
  EXPECT_GT(worst, 0.5) << "a bound that no evaluation comes near is too loose";
  EXPECT_GT(worst_of_nested, 1) << "the bound of two sums would have been enough";
}

TEST(ScaledSum, SeesWhatOverflowsBeforeItIsScaled) {
  ScaledSum<Bounded> sum(Bounded(0x1p-10));
  for (int i = 0; i < 4; ++i) sum.scaled(Bounded(0x1p126), Bounded(1));
  EXPECT_TRUE(sum.value().may_overflow);
  EXPECT_EQ(sum.value().value, 0x1p118);
}

TEST(ScaledSum, IsTheFormulaInOtherNumbers) {
  ScaledSum<double> sum(3);
  sum += 1.0;
  sum.scaled(2, 5);
  sum.scaled(-1, 4);
  EXPECT_EQ(sum.value(), 19);
}

}  // namespace
}  // namespace assay::numbers::scaled_sum_test
