// Compares a thousand steps of AdamW in float32 with fifty digits: the bound that Bounded carries from step to step
// holds throughout, stays far below the movement of the parameters, and catches a wrong constant.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/digits50.hpp"
#include "falsify/engine/random.hpp"
#include "reference/adamw_step.hpp"

namespace assay::numbers::adamw_test {
namespace {

using falsify::Random;

constexpr int kSteps = 1000;
/// Gradient scales of eight parameters, from the size of eps to 1; the last parameter has no gradient.
constexpr double kScales[] = {1, 1, 1e-2, 1e-4, 1e-6, 1e-8, 1e-9, 0};
constexpr double kStart[] = {1, 0, -0.5, 1e-3, 0, 1e-4, 0, 0.75};
constexpr Index kCount = std::size(kScales);

struct Constants {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0.01;
  int first = 1;  ///< number of the first step
};

template <class T>
struct Trajectory {
  std::vector<T> p, m, v, g;

  Trajectory() : m(kCount, T(0.0)), v(kCount, T(0.0)), g(kCount, T(0.0)) {
    for (double x : kStart) p.push_back(T(static_cast<double>(static_cast<float>(x))));
  }
  void step(const Constants& c, int number, const std::vector<float>& gradient) {
    for (std::size_t i = 0; i < gradient.size(); ++i) g[i] = T(static_cast<double>(gradient[i]));
    const Shape shape{kCount};
    reference::adamw_step<T>(View<T>(p.data(), shape), View<T>(m.data(), shape), View<T>(v.data(), shape),
                             View<const T>(g.data(), shape), View<T>(nullptr, {0, kCount}), c.lr, c.beta1, c.beta2,
                             c.eps, c.weight_decay, number + c.first - 1);
  }
};

struct Compared {
  double worst = 0;   ///< largest |float32 - fifty digits| / bound of a parameter
  double widest = 0;  ///< largest bound at the end, relative to how far its parameter moved
};

/// Compares float32 under `used` constants with fifty digits and bounds under the correct constants.
Compared compare(const Constants& used) {
  const Constants right;
  Trajectory<float> mirror;
  Trajectory<Bounded> bounded;
  Trajectory<Digits50> exact;
  Random random(11);
  Compared result;
  for (int t = 1; t <= kSteps; ++t) {
    std::vector<float> gradient;
    for (double scale : kScales) gradient.push_back(static_cast<float>(scale * (random.gaussian() + 0.5)));
    mirror.step(used, t, gradient);
    bounded.step(right, t, gradient);
    exact.step(right, t, gradient);
    for (std::size_t i = 0; i < kCount; ++i) {
      const double error = std::fabs(static_cast<double>(Digits50(mirror.p[i]) - exact.p[i]));
      result.worst = std::max(result.worst, error / bounded.p[i].error);
      EXPECT_LE(std::fabs(static_cast<double>(Digits50(bounded.p[i].value) - exact.p[i])), 0x1p-20 * bounded.p[i].error)
          << "the oracle's own error is no part of the bound's size";
    }
  }
  for (std::size_t i = 0; i < kCount; ++i) {
    const double moved = std::fabs(static_cast<double>(exact.p[i]) - kStart[i]);
    result.widest = std::max(result.widest, bounded.p[i].error / moved);
  }
  return result;
}

TEST(Adamw, AThousandStepsStayWithinTheirBound) {
  const Compared right = compare({});
  fmt::print("AdamW, {} steps: largest error / bound {:.3f}; largest bound / distance moved {:.2g}\n", kSteps,
             right.worst, right.widest);
  EXPECT_LE(right.worst, 1);
  EXPECT_GT(right.worst, 0.1) << "a bound that is never approached proves nothing";
  EXPECT_LT(right.widest, 0.02) << "a bound as wide as what it bounds proves nothing";
}

/// PyTorch's mean, m + (1 - beta1) (g - m), and the paper's corrected means, in float32.
TEST(Adamw, TheBoundHoldsForOtherOrders) {
  const Constants c;
  Random random(7);
  double worst = 0;
  for (int number = 1; number <= 20'000; ++number) {
    const int step = 1 + number % 50;
    const auto draw = [&] {
      return static_cast<float>(std::ldexp(random.gaussian(), static_cast<int>(random.between(-30, 30))));
    };
    const float p = draw(), m = draw(), v = std::fabs(draw()), g = draw();
    Bounded bp = Bounded::input(p), bm = Bounded::input(m), bv = Bounded::input(v), bg = Bounded::input(g);
    const Shape one{1};
    reference::adamw_step<Bounded>(View<Bounded>(&bp, one), View<Bounded>(&bm, one), View<Bounded>(&bv, one),
                                   View<const Bounded>(&bg, one), View<Bounded>(nullptr, {0, 1}), c.lr, c.beta1,
                                   c.beta2, c.eps, c.weight_decay, step);
    const auto f32 = [](double x) { return static_cast<float>(x); };
    const double beta1 = f32(c.beta1), beta2 = f32(c.beta2), lr = f32(c.lr);
    const float mean = m + f32(1 - beta1) * (g - m), squares = f32(beta2) * v + f32(1 - beta2) * (g * g);
    const float corrected = mean / f32(1 - std::pow(beta1, step)),
                root = std::sqrt(squares / f32(1 - std::pow(beta2, step)));
    const float moved =
        f32(1 - lr * static_cast<double>(f32(c.weight_decay))) * p - f32(lr) * (corrected / (root + f32(c.eps)));
    const auto ratio = [](float got, const Bounded& want) { return std::fabs(got - want.value) / want.error; };
    worst = std::max({worst, ratio(mean, bm), ratio(squares, bv), ratio(moved, bp)});
  }
  fmt::print("AdamW in other orders: largest error / bound {:.3f}\n", worst);
  EXPECT_LE(worst, 1);
  EXPECT_GT(worst, 0.5);
}

TEST(Adamw, AnInfiniteMeanMayBeNan) {
  constexpr double kInf = INFINITY;
  Bounded p(1.0), m(-kInf), v(1.0), g(0.0);
  const Shape one{1};
  const Constants c;
  reference::adamw_step<Bounded>(View<Bounded>(&p, one), View<Bounded>(&m, one), View<Bounded>(&v, one),
                                 View<const Bounded>(&g, one), View<Bounded>(nullptr, {0, 1}), c.lr, c.beta1, c.beta2,
                                 c.eps, c.weight_decay, 1);
  EXPECT_TRUE(m.may_overflow) << "-inf in one order, -inf + inf in the other";
  EXPECT_FALSE(v.may_overflow);
}

TEST(Adamw, AWrongConstantLeavesTheBound) {
  EXPECT_GT(compare({.beta2 = 0.95}).worst, 1) << "BUG 68";
  EXPECT_GT(compare({.lr = 1.0001e-3}).worst, 1) << "BUG 65";
  EXPECT_GT(compare({.first = 2}).worst, 1) << "bias corrected for the next step";
  EXPECT_GT(compare({.eps = 1.1e-8}).worst, 1);
  EXPECT_GT(compare({.weight_decay = 0.011}).worst, 1);
}

}  // namespace
}  // namespace assay::numbers::adamw_test
