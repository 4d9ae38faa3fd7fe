// Certificates of single operations: correct results hold, and each fault that a certificate covers fails.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "contract/certificates/attention.hpp"
#include "contract/certificates/convex_hull.hpp"
#include "contract/certificates/nf4_absmax_quantize.hpp"
#include "contract/certificates/nf4_quantize.hpp"
#include "contract/certificates/rmsnorm.hpp"
#include "contract/certificates/rope.hpp"
#include "contract/certificates/softmax.hpp"
#include "core/arithmetic.hpp"
#include "core/nf4.hpp"
#include "core/nf4_absmax.hpp"

namespace assay::numbers::own_certificates_test {
namespace {

using contract::Certified;
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

Certified distributions(const std::vector<float>& x, const std::vector<float>& y, const Shape& shape) {
  const auto view = [&](const std::vector<float>& v) { return StorageView(View<const float>(v.data(), shape)); };
  return contract::distributions(view(x), view(y));
}

TEST(SoftmaxCertificate, RowsSumToOneAndHoldNothingNegative) {
  const Index n = 4;
  const std::vector<float> x{0, 0, 0, 0, 1, 1, -kInf, 1};
  std::vector<float> y{0.25f, 0.25f, 0.25f, 0.25f, 1 / 3.0f, 1 / 3.0f, 0, 1 / 3.0f};
  const auto holds = [&] { return distributions(x, y, {2, n}).holds; };
  EXPECT_TRUE(holds());
  // Bounds of four terms are a few units of 2^-24: an error of tens of units must fail.
  for (float wrong : {0.25f + 0x1p-18f, 0.25f - 0x1p-18f, 0.5f, kNaN}) {
    y[2] = wrong;
    EXPECT_FALSE(holds()) << wrong;
  }
  y[2] = 0.25f;
  y[4] += 0.5f, y[5] -= 0.5f;  // keeps the sum
  EXPECT_FALSE(holds());
  y[4] -= 0.5f, y[5] += 0.5f;
  y[4] += 0x1p-18f;
  EXPECT_FALSE(holds());
}

TEST(SoftmaxCertificate, AMaskedRowIsZero) {
  const std::vector<float> x{-kInf, -kInf};
  std::vector<float> y{0, 0};
  const auto holds = [&] { return distributions(x, y, {1, 2}).holds; };
  EXPECT_TRUE(holds());
  y = {0.5f, 0.5f};
  EXPECT_FALSE(holds());
  EXPECT_EQ(distributions(x, y, {1, 2}).values, "row 0: y sums to 1, 1 from 0 where 0 is the bound");
}

TEST(RmsnormCertificate, RowsHaveAUnitMeanSquare) {
  const Index n = 8;
  const std::vector<float> weight(8, 2), x{1, -2, 3, -4, 5, -6, 7, -8};
  std::vector<float> y(8), rrms(1);
  const double eps = 0x1p-10;
  double squares = 0;
  for (float v : x) squares += v * v;
  const auto fill = [&](double scale) {
    rrms[0] = static_cast<float>(scale);
    for (std::size_t j = 0; j < 8; ++j) y[j] = x[j] * rrms[0] * weight[j];
  };
  const double scale = 1 / std::sqrt(squares / 8 + eps);
  const auto holds = [&] {
    return contract::unit_mean_square(View<const float>(x.data(), {1, n}), {weight.data(), {n}},
                                      View<const float>(y.data(), {1, n}), {rrms.data(), {1}}, eps)
        .holds;
  };
  fill(scale);
  EXPECT_TRUE(holds());
  for (double factor : {1 + 0x1p-19, 1 - 0x1p-19, 0.5, 2.0}) {
    fill(scale * factor);
    EXPECT_FALSE(holds()) << factor;
  }
  fill(1 / (std::sqrt(squares / 8) + eps));  // eps outside the root
  EXPECT_FALSE(holds());
  fill(scale);
  y[3] *= 1.01f;
  EXPECT_FALSE(holds());
  fill(scale);
  y[3] = kNaN;
  EXPECT_FALSE(holds());
  fill(scale);
  rrms[0] = 0;
  EXPECT_FALSE(holds());
}

TEST(RmsnormCertificate, SmallSquaresMayBeLostOneByOne) {
  // Added one by one, each of 64 squares is below half a unit in the last place of the first.
  const Index n = 65;
  std::vector<float> x(65, 0.9f), y(65), rrms(1);
  const std::vector<float> weight(65, 1);
  x[0] = 4096;
  float squares = 0;
  for (float v : x) squares += v * v;
  ASSERT_EQ(squares, 0x1p24f);
  rrms[0] = 1 / std::sqrt(squares / 65);
  for (std::size_t j = 0; j < 65; ++j) y[j] = x[j] * rrms[0];
  const View<const float> x_view(x.data(), {1, n}), y_view(y.data(), {1, n});
  EXPECT_TRUE(contract::unit_mean_square(x_view, {weight.data(), {n}}, y_view, {rrms.data(), {1}}, 0).holds);
}

TEST(RopeCertificate, PairsKeepTheirNorm) {
  const std::vector<float> x{3, 1, 4, 2};  // pairs (3, 4), (1, 2) by halves; (3, 1), (4, 2) interleaved
  for (const bool interleaved : {false, true}) {
    std::vector<float> y(4);
    const auto rotate = [&](double angle, double factor) {
      for (int i = 0; i < 2; ++i) {
        const int first = interleaved ? 2 * i : i, second = interleaved ? 2 * i + 1 : i + 2;
        y[first] = static_cast<float>(factor * (x[first] * std::cos(angle) - x[second] * std::sin(angle)));
        y[second] = static_cast<float>(factor * (x[second] * std::cos(angle) + x[first] * std::sin(angle)));
      }
    };
    const auto holds = [&] {
      return contract::pair_norms(View<const float>(x.data(), {1, 1, 4}), View<const float>(y.data(), {1, 1, 4}),
                                  interleaved ? 1 : 0)
          .holds;
    };
    rotate(0.7, 1);
    EXPECT_TRUE(holds());
    for (double factor : {1 + 0x1p-18, 1 - 0x1p-18, 0.0}) {
      rotate(0.7, factor);
      EXPECT_FALSE(holds()) << factor;
    }
    rotate(0.7, 1);
    std::swap(y[0], y[interleaved ? 2 : 1]);
    EXPECT_FALSE(holds());
  }
}

TEST(AttentionCertificate, ResultsLieWithinTheVisibleValues) {
  // One query sees two of three keys.
  const std::vector<float> v{1, 2, 100};
  const std::vector<std::int32_t> lengths{2}, starts{0};
  std::vector<float> y{1.5f}, logsumexp{0.5f};
  const auto holds = [&](Index keys) {
    const std::vector<std::int32_t> length{static_cast<std::int32_t>(keys)};
    return contract::within_hull(View<const float>(v.data(), {1, 3, 1, 1}), {length.data(), {1}}, {starts.data(), {1}},
                                 View<const float>(y.data(), {1, 1, 1, 1}), {logsumexp.data(), {1, 1, 1}}, 0)
        .holds;
  };
  EXPECT_TRUE(holds(2));
  for (float wrong : {2.0001f, 0.9999f, 50.0f, -50.0f, kNaN}) {
    y[0] = wrong;
    EXPECT_FALSE(holds(2)) << wrong;
  }
  y[0] = 50;
  EXPECT_TRUE(holds(3));
  y[0] = 0;
  EXPECT_FALSE(holds(0)) << "logsumexp of no keys";
  logsumexp[0] = -kInf;
  EXPECT_TRUE(holds(0));
  y[0] = 1;
  EXPECT_FALSE(holds(0));
}

/// [2, 1, 3] queries without keys; the last head of the first sequence has a finite logsumexp.
TEST(AttentionCertificate, NamesTheQueryThatSeesNoKey) {
  const std::vector<float> v(2, 1), y(6, 0), logsumexp{-kInf, -kInf, 7, -kInf, -kInf, -kInf};
  const std::vector<std::int32_t> lengths(2, 0), starts(2, 0);
  const contract::Certified result =
      contract::within_hull(View<const float>(v.data(), {2, 1, 1, 1}), {lengths.data(), {2}}, {starts.data(), {2}},
                            View<const float>(y.data(), {2, 1, 3, 1}), {logsumexp.data(), {2, 3, 1}}, 0);
  EXPECT_FALSE(result.holds);
  EXPECT_EQ(result.values, "logsumexp[0, 2, 0] = 7, and the query sees no key");
}

/// Base-2 weights 2^(s c - m c): once the rounding of m c exceeds the range of exponents, all weights vanish or
/// overflow together.
TEST(AttentionCertificate, WeightsInBase2AtHugeScores) {
  const contract::MeanBound bound(DType::f32, DType::f32, 3);
  contract::Hull hull;
  for (const float v : {1.0f, 2.0f, 3.0f}) hull.add(v);
  for (const float mean : {0.0f, 3.5f, kInf, kNaN}) {
    EXPECT_TRUE(bound.violated(hull, 3, mean, 1e6)) << mean << " of ordinary scores";
    EXPECT_FALSE(bound.violated(hull, 3, mean, 1e10)) << mean << " of huge ones";
  }
  EXPECT_TRUE(bound.violated(hull, 3, 6.1, 1e10)) << "more than twice the largest";
  EXPECT_TRUE(bound.violated(hull, 3, -0.1, 1e10)) << "of another sign";
  // exp after three roundings of the score: up to here underflow takes no more than part of the bound.
  EXPECT_TRUE(bound.violated(hull, 3, 3.00001, 3e8));
}

TEST(AttentionCertificate, NothingIsSaidOfASumThatMayOverflow) {
  contract::Hull hull;
  for (const float v : {3e38f, 3e38f, 3e38f}) hull.add(v);
  EXPECT_FALSE(contract::MeanBound(DType::f32, DType::f32, 3).violated(hull, 3, INFINITY, 0))
      << "of three sums of 3e38";
  contract::Hull small;
  for (const float v : {1e37f, 1e37f, 1e37f}) small.add(v);
  EXPECT_TRUE(contract::MeanBound(DType::f32, DType::f32, 3).violated(small, 3, INFINITY, 0));
}

/// Weights of 11 bits may bring a mean of the largest f16 numbers to where the store makes it infinite.
TEST(AttentionCertificate, AStoreMayOverflow) {
  contract::Hull hull, smaller;
  for (const double v : {-65504.0, 65504.0}) hull.add(v);
  for (const double v : {-65000.0, 65000.0}) smaller.add(v);
  {
    const ArithmeticScope scope(Arithmetic{.inputs = Format::f16});
    const contract::MeanBound bound(DType::f16, DType::f16, 2);
    for (const float mean : {kInf, -kInf}) {
      EXPECT_FALSE(bound.violated(hull, 2, mean, 1)) << mean;
      EXPECT_TRUE(bound.violated(smaller, 2, mean, 1)) << mean << " of smaller values";
    }
    EXPECT_TRUE(contract::MeanBound(DType::f16, DType::f32, 2).violated(hull, 2, kInf, 1)) << "stored as f32";
  }
  EXPECT_TRUE(contract::MeanBound(DType::f16, DType::f16, 2).violated(hull, 2, kInf, 1)) << "by weights of 24 bits";
}

TEST(Nf4Certificate, EveryCodeIsTheNearest) {
  const float scale = 2;
  std::vector<float> x;
  for (const float entry : kNf4) x.push_back(entry * scale * 0.99f);
  const Index n = static_cast<Index>(x.size());
  std::vector<std::uint8_t> codes(x.size() / 2);
  for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::uint8_t>(2 * i << 4U | (2 * i + 1));
  const std::vector<float> absmax{scale};
  const auto holds = [&] {
    return contract::nf4_nearest({x.data(), {1, n}}, {codes.data(), {1, n / 2}}, {absmax.data(), {1, 1}}).holds;
  };
  EXPECT_TRUE(holds());
  for (std::size_t i = 0; i < codes.size(); ++i)
    for (const int step : {1, -1, 16, -16}) {
      const std::uint8_t right = codes[i];
      if (right + step < 0 || right + step > 255 || (std::abs(step) == 1 && (right & 15) + step > 15)) continue;
      codes[i] = static_cast<std::uint8_t>(right + step);
      EXPECT_FALSE(holds()) << i << " " << step;
      codes[i] = right;
    }
}

TEST(AbsmaxCertificate, OffsetScaleAndCodesAreChecked) {
  // Two scales: their mean, and the ends of the codebook.
  const std::vector<float> absmax{1, 3};
  std::vector<std::uint8_t> codes(256, static_cast<std::uint8_t>(kAbsmaxZero));
  codes[0] = 0, codes[1] = static_cast<std::uint8_t>(kAbsmaxCode.size() - 1);
  std::vector<float> absmax2{1}, offset{2};
  const auto holds = [&] {
    return contract::nf4_absmax_nearest({absmax.data(), {1, 2}}, {codes.data(), {256}}, {absmax2.data(), {1}},
                                        {offset.data(), {1}})
        .holds;
  };
  ASSERT_TRUE(holds());
  absmax2[0] = 1.001f;
  EXPECT_FALSE(holds());
  absmax2[0] = 1;
  offset[0] = 2.001f;
  EXPECT_FALSE(holds());
  offset[0] = 2;
  codes[1] -= 1;
  EXPECT_FALSE(holds());
  codes[1] += 1;
  codes[0] += 1;
  EXPECT_FALSE(holds());
}

/// A scale equal to the largest float: its sum may overflow, and then nothing is defined. Without scales the mean is 0.
TEST(AbsmaxCertificate, SumsAtTheEndOfTheRangeAndOfNothing) {
  const auto holds = [](const std::vector<float>& absmax, float scale, float offset) {
    const std::vector<std::uint8_t> codes(256, static_cast<std::uint8_t>(kAbsmaxZero));
    const Index count = static_cast<Index>(absmax.size()), groups = absmax_groups(count);
    return contract::nf4_absmax_nearest({absmax.data(), {count, 1}}, {codes.data(), {groups * 256}}, {&scale, {groups}},
                                        {&offset, {1}})
        .holds;
  };
  constexpr float kMax = std::numeric_limits<float>::max();
  EXPECT_TRUE(holds({kMax}, 0, kMax));
  EXPECT_TRUE(holds({kMax}, kNaN, kNaN)) << "roundings decide whether the sum overflows";
  EXPECT_FALSE(holds({kMax / 2}, kNaN, kNaN));
  EXPECT_FALSE(holds({kMax}, 0, kMax / 2));
  EXPECT_TRUE(holds({}, 0, 0));
  EXPECT_FALSE(holds({}, 0, 1));
  EXPECT_FALSE(holds({}, 0, kNaN));
}

}  // namespace
}  // namespace assay::numbers::own_certificates_test
