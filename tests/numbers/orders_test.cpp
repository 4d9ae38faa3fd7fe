// Formulas as other frameworks order them: within the reference's bound, or of a class that it allows, over all
// magnitudes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cfloat>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "contract/certificates/nf4_matmul.hpp"
#include "core/attention_forms.hpp"
#include "core/dual.hpp"
#include "core/nf4.hpp"
#include "core/q4_k.hpp"
#include "falsify/engine/random.hpp"
#include "reference/cross_entropy_backward.hpp"
#include "reference/nf4_matmul.hpp"
#include "reference/nf4_matmul_nt.hpp"
#include "reference/orders.hpp"
#include "reference/q4_k_gemv.hpp"
#include "reference/silu_backward.hpp"
#include "reference/silu_mul_backward.hpp"
#include "reference/softmax_backward.hpp"

namespace assay::numbers::orders_test {
namespace {

using falsify::Random;
using Inputs = std::array<float, 3>;

struct Order {
  const char* name;
  std::function<Bounded(const Inputs&)> bound;
  std::function<float(const Inputs&)> computed;
};

const Shape kOne{1, 1};

Bounded of_silu(const Inputs& in) {
  Bounded x = Bounded::input(in[0]), dy = Bounded::input(in[1]), dx;
  reference::silu_backward<Bounded>(View<const Bounded>(&x, kOne), View<const Bounded>(&dy, kOne),
                                    View<Bounded>(&dx, kOne));
  return dx;
}
Bounded of_silu_mul(const Inputs& in) {
  Bounded gate = Bounded::input(in[0]), up = Bounded::input(in[1]), dy = Bounded::input(in[2]), dgate;
  reference::silu_mul_backward<Bounded>(View<const Bounded>(&gate, kOne), View<const Bounded>(&up, kOne),
                                        View<const Bounded>(&dy, kOne), View<Bounded>(&dgate, kOne),
                                        View<Bounded>(nullptr, kOne));
  return dgate;
}
/// One class only: p = exp(logit - logsumexp), here with a logsumexp of 0.
Bounded of_cross_entropy(const Inputs& in) {
  Bounded logit = Bounded::input(-std::fabs(in[0])), weight = Bounded::input(in[1]), dloss = Bounded::input(in[2]),
          dlogit;
  Bounded zero(0.0), one(1.0);
  const Shape single{1};
  reference::cross_entropy_backward<Bounded>(View<const Bounded>(&logit, kOne), View<const Bounded>(&zero, single),
                                             View<const Bounded>(&weight, single), View<const Bounded>(&zero, single),
                                             View<const Bounded>(&one, single), View<const Bounded>(&dloss, single),
                                             View<const Bounded>(&zero, single), View<Bounded>(&dlogit, kOne));
  return dlogit;
}
/// One entry y only, so that the sum is y dy.
Bounded of_softmax(const Inputs& in) {
  Bounded y = Bounded::input(in[0]), dy = Bounded::input(in[1]), dx;
  reference::softmax_backward<Bounded>(View<const Bounded>(&y, kOne), View<const Bounded>(&dy, kOne),
                                       View<Bounded>(&dx, kOne));
  return dx;
}

float sigmoid_of(float x) { return 1 / (1 + std::exp(-x)); }

const Order kOrders[] = {
    {"silu, dy s first", of_silu,
     [](const Inputs& in) {
       const float s = sigmoid_of(in[0]);
       return in[1] * s * (1 + in[0] * (1 - s));
     }},
    {"silu, gated, dy up s first", of_silu_mul,
     [](const Inputs& in) {
       const float s = sigmoid_of(in[0]);
       return in[2] * in[1] * s * (1 + in[0] * (1 - s));
     }},
    {"silu, gated, up last", of_silu_mul,
     [](const Inputs& in) {
       const float s = sigmoid_of(in[0]);
       return in[2] * s * (1 + in[0] * (1 - s)) * in[1];
     }},
    {"cross-entropy, two products", of_cross_entropy,
     [](const Inputs& in) {
       const float scale = in[1] * in[2];
       return std::exp(-std::fabs(in[0])) * scale - scale;
     }},
    {"softmax, two products", of_softmax, [](const Inputs& in) { return in[0] * in[1] - in[0] * (in[0] * in[1]); }},
};

/// Draws a moderate value, a value of any magnitude, or an infinity.
float draw(Random& random, double moderate) {
  if (random.chance(0.02)) return static_cast<float>(random.sign() * INFINITY);
  if (random.chance(0.5)) return static_cast<float>(moderate * random.gaussian());
  return static_cast<float>(std::ldexp(random.gaussian(), static_cast<int>(random.between(-149, 127))));
}

TEST(Orders, OfOtherFrameworksAreWithinTheBound) {
  for (const Order& order : kOrders) {
    Random random(falsify::derive(1, order.name));
    double worst = 0;
    int compared = 0;
    for (int n = 0; n < 100'000; ++n) {
      const Inputs in{draw(random, 10), draw(random, 1), draw(random, 1)};
      const Bounded want = order.bound(in);
      const float got = order.computed(in);
      if (want.may_overflow && !std::isfinite(got)) continue;
      const std::string where = fmt::format("{}: got {} of {} {} {}, want {} within {}", order.name, got, in[0], in[1],
                                            in[2], want.value, want.error);
      ASSERT_EQ(std::isnan(got), std::isnan(want.value)) << where;
      ASSERT_EQ(std::isfinite(got), std::isfinite(want.value)) << where;
      if (!std::isfinite(got)) {
        ASSERT_TRUE(std::isnan(got) || got == want.value) << where;
        continue;
      }
      ++compared;
      const double off = std::fabs(got - want.value);
      ASSERT_LE(off, want.error) << where;
      if (off > 0 && std::isfinite(want.error)) worst = std::max(worst, off / want.error);
    }
    fmt::print("{:>30}: {} compared; largest error / bound {:.3f}\n", order.name, compared, worst);
    EXPECT_GT(worst, 0.3) << order.name;
  }
}

/// One product of three factors, with the scale last or first.
TEST(Orders, OfNf4AreWithinBoundAndCertificate) {
  Random random(3);
  double worst = 0;
  for (int n = 0; n < 20'000; ++n) {
    const float x = draw(random, 1),
                scale = static_cast<float>(std::ldexp(random.gaussian(), static_cast<int>(random.between(-30, 30))));
    const auto code = static_cast<std::uint8_t>(random.below(16) << 4);
    const float entry = kNf4[code >> 4];
    if (!std::isfinite(x)) continue;
    const Bounded of_x = Bounded::input(x), of_code(static_cast<double>(code)), of_scale = Bounded::input(scale);
    const View<const Bounded> vx(&of_x, kOne), codes(&of_code, kOne), scales(&of_scale, kOne);
    Bounded nt, plain;
    reference::nf4_matmul_nt<Bounded>(vx, codes, scales, View<Bounded>(&nt, kOne));
    reference::nf4_matmul<Bounded>(vx, codes, scales, View<Bounded>(&plain, kOne));
    const float last = (x * entry) * scale, first = (x * scale) * entry;
    const View<const float> fx(&x, kOne), fscale(&scale, kOne);
    const View<const std::uint8_t> bytes(&code, kOne);
    const std::string where = fmt::format("{} {} {}", x, entry, scale);
    for (const auto& [got, want] : {std::pair{last, nt}, std::pair{first, plain}}) {
      if (!std::isfinite(got)) {
        ASSERT_TRUE(want.may_overflow || got == want.value) << where;
        continue;
      }
      ASSERT_LE(std::fabs(got - want.value), want.error) << where;
      if (want.error > 0 && std::isfinite(want.error))
        worst = std::max(worst, std::fabs(got - want.value) / want.error);
    }
    ASSERT_TRUE(contract::freivalds_nf4_nt(fx, bytes, fscale, View<const float>(&last, kOne)).holds) << where;
    ASSERT_TRUE(contract::freivalds_nf4(fx, bytes, fscale, View<const float>(&first, kOne)).holds) << where;
  }
  EXPECT_GT(worst, 0.5);
}

/// The difference of these parts is a float, but not that of a kernel's inexact parts: the kernel's difference is
/// rounded.
TEST(Orders, AMeanOfPartsThatAreOffIsNotExact) {
  const Bounded half(0.5), a(1.0, 0x1p-23, 0x1p-23, false), b(3.0, 0x1p-22, 0x1p-22, false);
  const Bounded mean = reference::weighted_mean(half, a, half, b);
  double worst = 0;
  for (const float from : {1 - 0x1p-23f, 1.0f, 1 + 0x1p-23f})
    for (const float to : {3 - 0x1p-22f, 3.0f, 3 + 0x1p-22f})
      for (const float got : {0.5f * from + 0.5f * to, from + 0.5f * (to - from)})
        worst = std::max(worst, std::fabs(got - mean.value));
  EXPECT_EQ(mean.value, 2);
  EXPECT_LE(worst, mean.error);
  EXPECT_GT(worst, 0.5 * a.error + 0.5 * b.error) << "what the parts bring along is less";
}

TEST(Orders, AProductOfFourInAnyNumbers) {
  EXPECT_EQ(reference::product_of_four(2.0, 3.0, 5.0, 7.0), 210);
  EXPECT_EQ(reference::product_of_four(Bounded(2.0), Bounded(3.0), Bounded(5.0), Bounded(7.0)).value, 210);
  EXPECT_EQ(reference::product_of_four(Dual<double>(2, 1), Dual<double>(3, 0), Dual<double>(5, 0), Dual<double>(7, 0))
                .derivative,
            105);
}

/// Any two or three factors may be multiplied first; a product equal to the largest float does not overflow.
TEST(Orders, AProductOfFourMayOverflowWhereTwoOrThreeFactorsDo) {
  const auto may_overflow = [](double a, double b, double c, double d) {
    double f[] = {a, b, c, d};
    std::ranges::sort(f);
    int which = 0, all = 0;
    do {
      const Bounded x = reference::product_of_four(Bounded(f[0], 0, 0, false), Bounded(f[1], 0, 0, false),
                                                   Bounded(f[2], 0, 0, false), Bounded(f[3], 0, 0, false));
      which += x.may_overflow, ++all;
    } while (std::next_permutation(f, f + 4));
    EXPECT_TRUE(which == 0 || which == all) << "in " << which << " of " << all << " orders of the arguments";
    return which > 0;
  };
  constexpr double kInf = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(may_overflow(0x1p100, 0x1p100, 0x1p-100, 0x1p-100)) << "two of them";
  EXPECT_TRUE(may_overflow(0x1p60, 0x1p60, 0x1p60, 0x1p-120)) << "three of them";
  EXPECT_TRUE(may_overflow(-0x1p100, 0x1p100, 0x1p-100, 0x1p-100)) << "whatever their signs";
  EXPECT_FALSE(may_overflow(0x1p60, 0x1p60, 0x1p7, 0x1p-120));
  EXPECT_TRUE(may_overflow(kInf, 0x1p-50, 0x1p-50, 0x1p-50)) << "infinity times what vanished";
  EXPECT_FALSE(may_overflow(kInf, 0x1p-40, 0x1p-40, 0x1p-40));
  EXPECT_FALSE(may_overflow(kInf, 0, 1, 1)) << "NaN in every order";
  const auto flag = [](double a, double b, double c, double d) {
    return reference::product_of_four(Bounded(a, 0, 0, false), Bounded(b, 0, 0, false), Bounded(c, 0, 0, false),
                                      Bounded(d, 0, 0, false))
        .may_overflow;
  };
  EXPECT_FALSE(flag(FLT_MAX, 0.5, 0.5, 1)) << "the largest times one";
  EXPECT_FALSE(flag(FLT_MAX, 0.5, 1, 1)) << "and once more";
  EXPECT_FALSE(flag(kInf, 0x1p-63, 0x1p-63, 8)) << "the smallest normal number is not 0";
  EXPECT_FALSE(flag(0x1p-63, 0x1p-63, 8, kInf));
}

/// x may be scaled before its product, or the sum after all terms.
TEST(Orders, AScaledDotMayOverflowWhereAFactorOrTheTermsTogetherDo) {
  const auto may_overflow = [](double scale, std::initializer_list<std::pair<double, double>> terms) {
    ScaledDot<Bounded> dot(Bounded(scale, 0, 0, false));
    for (const auto& [x, y] : terms) dot.add(Bounded(x, 0, 0, false), Bounded(y, 0, 0, false));
    return dot.value().may_overflow;
  };
  constexpr double kLargest = FLT_MAX;
  EXPECT_TRUE(may_overflow(4, {{kLargest / 2, 0x1p-20}})) << "the scaled factor is twice the largest float";
  EXPECT_TRUE(may_overflow(-4, {{kLargest / 2, 0x1p-20}}));
  EXPECT_FALSE(may_overflow(4, {{kLargest / 4, 0x1p-20}})) << "the scaled factor is the largest float";
  EXPECT_FALSE(may_overflow(4, {{0x1p-20, kLargest / 2}})) << "the other factor is not scaled";
  EXPECT_TRUE(may_overflow(2, {{kLargest / 4, 1}, {-kLargest / 4, 1}})) << "half of it twice, and roundings";
  EXPECT_FALSE(may_overflow(2, {{kLargest / 4 * (1 - 0x1p-16), 1}, {-kLargest / 4 * (1 - 0x1p-16), 1}}));
  EXPECT_TRUE(may_overflow(-2, {{kLargest / 4, 1}, {-kLargest / 4, 1}}));
  EXPECT_FALSE(may_overflow(2, {}));
}

/// Applies the scale to the sum, to one factor, or its root to both factors.
TEST(Orders, OfAScaledDotAreWithinItsBound) {
  Random random(4);
  double worst[3] = {};
  for (int trial = 0; trial < 20'000; ++trial) {
    const float scale = trial % 4 == 0 ? 0.125F : static_cast<float>(std::exp2(2 - 12 * random.uniform()));
    const auto root = static_cast<float>(std::sqrt(static_cast<double>(scale)));
    const auto n = 1 + random.below(3);
    float sums[3] = {};
    ScaledDot<Bounded> dot{Bounded(static_cast<double>(scale))};
    const int exponent = static_cast<int>(random.between(-60, 40));
    for (std::uint64_t i = 0; i < n; ++i) {
      const float x = static_cast<float>(std::ldexp(random.gaussian(), exponent)),
                  y = static_cast<float>(std::ldexp(random.gaussian(), -exponent - (trial % 2) * 140));
      dot.add(Bounded::input(x), Bounded::input(y));
      sums[0] += x * y, sums[1] += (x * scale) * y, sums[2] += (x * root) * (y * root);
    }
    sums[0] *= scale;
    const Bounded want = dot.value();
    for (int o = 0; o < 3; ++o) {
      ASSERT_LE(std::fabs(sums[o] - want.value), want.error)
          << "order " << o << " of " << n << " terms, scale " << scale;
      if (want.error > 0) worst[o] = std::max(worst[o], std::fabs(sums[o] - want.value) / want.error);
    }
  }
  fmt::print("scaled dot: largest error / bound {:.3f} on the sum, {:.3f} on a factor, {:.3f} on both\n", worst[0],
             worst[1], worst[2]);
  EXPECT_GT(worst[2], 0.5);
}

/// A row of one block has one scale: the infinite scale of the next row does not affect it.
TEST(Orders, AWholeBlockOfNf4HasOneScale) {
  const std::vector<Bounded> x(64, Bounded(1.0)), codes(64, Bounded(0x77)), scales{Bounded(1.0), Bounded(HUGE_VAL)};
  std::vector<Bounded> y(2);
  reference::nf4_matmul_nt<Bounded>(View<const Bounded>(x.data(), {1, 64}), View<const Bounded>(codes.data(), {2, 32}),
                                    View<const Bounded>(scales.data(), {2, 1}), View<Bounded>(y.data(), {1, 2}));
  EXPECT_EQ(y[0].value, 0);
  EXPECT_FALSE(y[0].may_overflow);
  EXPECT_TRUE(std::isnan(y[1].value) || y[1].may_overflow) << "0 times infinity, term by term";
}

/// A sub-block of scale 0 under an infinite d: NaN by elements and by sub-blocks, but not by super-blocks as in ggml.
TEST(Orders, AnInfiniteStepOfQ4KMayMeetNoZero) {
  std::vector<Bounded> bytes(q4_k::kBytes, Bounded(0.0));
  bytes[0] = Bounded(0.0), bytes[1] = Bounded(0x7c);  // d is infinite, dmin 0
  bytes[q4_k::kPacked] = Bounded(1.0);                // sc[0] = 1, all others 0
  for (std::size_t i = q4_k::kCodes; i < bytes.size(); ++i) bytes[i] = Bounded(0x11);
  const std::vector<Bounded> x(64, Bounded(1.0));
  Bounded y;
  reference::q4_k_gemv<Bounded>(View<const Bounded>(bytes.data(), {1, q4_k::kBytes}),
                                View<const Bounded>(x.data(), {64}), View<Bounded>(&y, {1}));
  EXPECT_FALSE(std::isfinite(y.value));
  EXPECT_TRUE(y.may_overflow) << "infinite and NaN are both right";
}

}  // namespace
}  // namespace assay::numbers::orders_test
