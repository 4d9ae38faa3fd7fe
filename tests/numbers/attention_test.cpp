// Attention: a case worked out in 50 digits, and its bounds: sound for every correct float32 evaluation of the formula,
// and sharp enough to reject incorrect ones.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cfloat>
#include <cmath>
#include <vector>

#include "core/half.hpp"
#include "core/rounded.hpp"
#include "falsify/engine/random.hpp"
#include "reference/attention.hpp"
#include "reference/attention_backward.hpp"

namespace assay::numbers::attention_test {
namespace {

using falsify::Random;
using Values = std::vector<double>;

/// Expects agreement within 32 roundings of numbers up to 6, the error of sums of at most twelve such products.
void expect(const Values& got, const Values& want) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], 32 * 6 * 0x1p-53) << "element " << i;
}

// Two heads that share keys and values, two queries at positions 1 and 2 of three keys, causal, scale 1/2. By Python's
// decimal module from the definitions.
TEST(GoldenAttention, TwoHeadsTwoQueriesThreeKeys) {
  const Values q{1, 2, -1, 1, 0, 3, 2, -2}, k{1, 0, 2, -1, -1, 1}, v{1, -2, 3, 4, -5, 6}, lengths{3}, starts{1};
  const Values dy{1, -1, 2, 0, 0, 1, -1, 3};
  const Shape queries{1, 2, 2, 2}, keys{1, 3, 1, 2}, one{1}, rows{1, 2, 2};
  Values y(8), logsumexp(4), dq(8), dk(6), dv(6);
  reference::attention<double>({q.data(), queries}, {k.data(), keys}, {v.data(), keys}, {lengths.data(), one},
                               {starts.data(), one}, {y.data(), queries}, {logsumexp.data(), rows}, 0.5, 1);
  expect(y, {1.7550813375962908, 0.26524401278887261, 1.5378828427399902, -0.38635147178002927, -3.6353570609942802,
             4.5194517163383319, 2.7158026877147585, 3.3008015735937479});
  expect(logsumexp, {0.97407698418010669, 1.7413112966571571, -0.18673831248177716, 3.1328452337275756});
  reference::attention_backward<double>({q.data(), queries}, {k.data(), keys}, {v.data(), keys}, {lengths.data(), one},
                                        {starts.data(), one}, {y.data(), queries}, {logsumexp.data(), rows},
                                        {dy.data(), queries}, {dq.data(), queries}, {dk.data(), keys},
                                        {dv.data(), keys}, 0.5, 1);
  expect(dq, {-0.47000742440318899, 0.47000742440318899, 0.3932238664829637, -0.3932238664829637, -1.1732728878687824,
              0.59171571726335803, 0.70061106845572463, -0.74725861896115697});
  expect(dk, {-0.81787614905789041, 0.51370255042498525, 0.72458104804702583, -2.1650789612303938, 0.09329510101086462,
              1.6513764108054085});
  expect(dv, {1.9660768339268548, -0.091669975456789135, 0.039822916475048042, 2.288373689661805,
              -0.0058997504019027806, 0.80329628579498424});
}

// Scores beyond float32 evaluate to -inf, to NaN if partial sums are both infinities, or to the least float: then 0 is
// no more correct than other outputs. Without a key, or with a key of -inf, nothing overflows, and the output is 0.
TEST(GoldenAttention, ScoresThatOverflowLeaveNothingCertain) {
  const auto outputs = [](const std::vector<float>& q, const std::vector<float>& k, float length) {
    std::vector<Bounded> qs, ks, vs(q.size(), Bounded::input(5)), y(q.size()), logsumexp(1),
        lengths{Bounded::input(length)}, starts{Bounded::input(0)};
    for (float x : q) qs.push_back(Bounded::input(x));
    for (float x : k) ks.push_back(Bounded::input(x));
    const Shape row{1, 1, 1, static_cast<Index>(q.size())}, sequence{1}, rest{1, 1, 1};
    reference::attention<Bounded>({qs.data(), row}, {ks.data(), row}, {vs.data(), row}, {lengths.data(), sequence},
                                  {starts.data(), sequence}, {y.data(), row}, {logsumexp.data(), rest}, 1, 0);
    return std::pair(y[0], logsumexp[0]);
  };
  const auto [y, logsumexp] = outputs({1e30F, 1e30F, 1e30F}, {1e30F, -1e30F, -1e30F}, 1);
  EXPECT_TRUE(y.may_overflow && y.error == INFINITY);
  EXPECT_TRUE(logsumexp.may_overflow && logsumexp.error == INFINITY);
  for (const auto& [none, its_logsumexp] :
       {outputs({1, 2, 3}, {1, 2, 3}, 0), outputs({1, 2, 3}, {-INFINITY, 2, 3}, 1)}) {
    EXPECT_EQ(none.value, 0);
    EXPECT_EQ(none.error, 0);
    EXPECT_FALSE(none.may_overflow);
    EXPECT_EQ(its_logsumexp.value, -INFINITY);
    EXPECT_FALSE(its_logsumexp.may_overflow);
  }
}

// Overflow is possible once 4 times the magnitudes of the products reaches the largest float, which products of an
// eighth do: roundings add 4 2 2^-24 even though the products cancel. Factors of 2^60 do not overflow when scaled.
TEST(GoldenAttention, ScaledTermsMayOverflowWhereTheirSumDoesNot) {
  const auto overflows = [](float x) {
    ScaledDot<Bounded> dot{Bounded(4.0)};
    dot.add(Bounded::input(x), Bounded::input(0x1p60F));
    dot.add(Bounded::input(x), Bounded::input(-0x1p60F));
    EXPECT_EQ(dot.value().value, 0);
    return dot.value().may_overflow;
  };
  constexpr float kEighth = FLT_MAX * 0x1p-63F;
  EXPECT_FALSE(overflows(kEighth * (1 - 0x1p-20F)));
  EXPECT_TRUE(overflows(kEighth));
  EXPECT_TRUE(overflows(2 * kEighth));
}

// A factor in the inputs' format gets error e plus one unit of the largest possible value.
TEST(AttentionBounds, AFactorIsRoundedFromWhereverItIs) {
  const ArithmeticScope narrow({.inputs = Format::bf16});
  const double unit = Roundings::current().input_unit;
  for (const double value : {1.0, -1.5, 1000.0}) {
    EXPECT_GE(factor(Bounded(value, 0, 0, false)).error, unit * std::fabs(value)) << value;
    const double error = factor(Bounded(value, 0.5, 0.25, false)).error, least = 0.5 + unit * (std::fabs(value) + 0.5);
    EXPECT_GE(error, least) << value;
    EXPECT_LE(error, least * (1 + 2 * detail::kDoubleSlack))
        << value << ": twice the slack for the evaluation of bounds in double";
  }
}

// The largest double is treated like every other number.
TEST(AttentionBounds, AWeightOfTheLargestScoreIsAsUncertainAsThatOfTheNext) {
  const Bounded largest(DBL_MAX, 0, 0, true), next(std::nextafter(DBL_MAX, 0), 0, 0, true);
  EXPECT_EQ(attention_weight(largest, largest, 2).error, attention_weight(next, next, 2).error);
}

// Factors may be scaled before they are multiplied: 1e30 then overflows although all partial sums of scores are floats.
TEST(GoldenAttention, ScaledFactorsMayOverflowWhereScoresDoNot) {
  for (const float scale : {1.0F, 1e20F}) {
    ScaledDot<Bounded> dot{Bounded(scale)};
    dot.add(Bounded::input(1e25F), Bounded::input(1e-25F));
    dot.add(Bounded::input(1e25F), Bounded::input(-1e-25F));
    EXPECT_EQ(dot.value().may_overflow, scale > 1) << scale;
    EXPECT_EQ(dot.value().value, 0);
  }
}

TEST(GoldenAttention, TheLogarithmOfASumInheritsWhatIsLikelyOfIt) {
  const Bounded sum{8, 4e-3, 2e-3, false}, shift{3, 0, 0, false};  // errors far above the roundings of the logarithm
  EXPECT_GE(log_of_sum(shift, sum).error, 4e-3 / 8);
  EXPECT_GE(log_of_sum(shift, sum).statistical, 2e-3 / 8);
  EXPECT_LT(log_of_sum(shift, sum).statistical, log_of_sum(shift, sum).error);
}

/// One query against n keys of d elements, values of one column.
struct Row {
  Index n, d;
  std::vector<float> q, k, v;
  float scale;

  Row(Random& random) : n(random.between(1, 100)), d(random.between(1, 40)) {
    scale = static_cast<float>(std::ldexp(1 + random.uniform(), -static_cast<int>(random.between(1, 5))));
    const double size = std::ldexp(1.0, static_cast<int>(random.between(-3, 3)));
    const double offset = random.chance(0.3) ? 100 : 0, slope = random.chance(0.3) ? random.gaussian() : 0;
    for (Index c = 0; c < d; ++c) q.push_back(static_cast<float>(random.gaussian()));
    for (Index j = 0; j < n; ++j)
      for (Index c = 0; c < d; ++c)
        k.push_back(
            static_cast<float>(size * random.gaussian() + (c == 0 ? slope * static_cast<double>(j) / q[0] : 0)));
    for (Index j = 0; j < n; ++j) v.push_back(static_cast<float>(offset + random.gaussian()));
  }
};

struct Result {
  float y, logsumexp;
};

enum class Way { two_passes, scaled_before, normalized_before, base_2, online, online_base_2, bf16_weights };
constexpr Way kWays[] = {Way::two_passes, Way::scaled_before, Way::normalized_before, Way::base_2,
                         Way::online,     Way::online_base_2, Way::bf16_weights};
constexpr int kTile = 8;

Arithmetic arithmetic_of(Way way) {
  Arithmetic arithmetic;
  if (way == Way::online || way == Way::online_base_2) arithmetic.online_tile = kTile;
  if (way == Way::bf16_weights) arithmetic.inputs = Format::bf16;
  return arithmetic;
}

/// Evaluates in plain float32. With base_2, scale and log2(e) form one constant, and the difference is fused.
Result evaluate(const Row& row, Way way) {
  const bool base_2 = way == Way::base_2 || way == Way::online_base_2;
  const float constant = base_2 ? row.scale * 1.44269504F : row.scale;
  std::vector<float> score;
  for (Index j = 0; j < row.n; ++j) {
    float dot = 0;
    for (Index c = 0; c < row.d; ++c) {
      const auto at = static_cast<std::size_t>(c);
      const float left = way == Way::scaled_before ? row.q[at] * constant : row.q[at];
      dot = std::fma(left, row.k[static_cast<std::size_t>(j * row.d + c)], dot);
    }
    score.push_back(way == Way::scaled_before || base_2 ? dot : dot * constant);
  }
  const auto power = [&](float x, float largest) {
    return base_2 ? std::exp2(std::fma(x, constant, -(largest * constant))) : std::exp(x - largest);
  };
  const Index tile = way == Way::online || way == Way::online_base_2 ? kTile : row.n;
  float largest = -INFINITY, total = 0, sum = 0;
  for (Index first = 0; first < row.n; first += tile) {
    const Index end = std::min(first + tile, row.n);
    float grown = largest;
    for (Index j = first; j < end; ++j) grown = std::max(grown, score[static_cast<std::size_t>(j)]);
    if (grown > largest && first > 0) {
      const float factor = power(largest, grown);
      total *= factor;
      sum *= factor;
    }
    largest = grown;
    for (Index j = first; j < end; ++j) {
      const auto at = static_cast<std::size_t>(j);
      const float weight = power(score[at], largest);
      total += weight;
      score[at] = weight;
      if (way != Way::normalized_before)
        sum += (way == Way::bf16_weights ? widen(to_bfloat16(weight)) : weight) * row.v[at];
    }
  }
  if (way == Way::normalized_before)
    for (Index j = 0; j < row.n; ++j)
      sum += score[static_cast<std::size_t>(j)] / total * row.v[static_cast<std::size_t>(j)];
  const float y = way == Way::normalized_before ? sum : sum * (1 / total);
  return {y, base_2 ? (largest * constant + std::log2(total)) * 0.693147181F : largest + std::log(total)};
}

struct Want {
  Bounded y, logsumexp;
};

Want bounded(const Row& row, Way way) {
  const Arithmetic arithmetic = arithmetic_of(way);
  const ArithmeticScope scope(arithmetic);
  const auto inputs = [&](const std::vector<float>& x) {
    std::vector<Bounded> of;
    for (float e : x) of.push_back(way == Way::bf16_weights ? Bounded(e, 0, 0, false) : Bounded::input(e));
    return of;
  };
  // Only the first column of the head's values is set: y has one column.
  const std::vector<Bounded> q = inputs(row.q), k = inputs(row.k), v = inputs(row.v);
  std::vector<Bounded> values(k.size(), Bounded(0)), y(q.size());
  for (Index j = 0; j < row.n; ++j) values[static_cast<std::size_t>(j * row.d)] = v[static_cast<std::size_t>(j)];
  const std::vector<Bounded> length{Bounded(static_cast<double>(row.n))}, start{Bounded(0)};
  Bounded logsumexp;
  const Shape keys{1, row.n, 1, row.d}, query{1, 1, 1, row.d}, one{1};
  reference::attention<Bounded>({q.data(), query}, {k.data(), keys}, {values.data(), keys}, {length.data(), one},
                                {start.data(), one}, {y.data(), query}, {&logsumexp, Shape{1, 1, 1}}, row.scale, 0);
  return {y[0], logsumexp};
}

double over(float got, const Bounded& want) { return std::fabs(got - want.value) / want.error; }

TEST(AttentionBounds, HoldForEveryCorrectEvaluation) {
  for (Way way : kWays) {
    Random random(falsify::derive(1, std::to_string(static_cast<int>(way))));
    double worst = 0, worst_logarithm = 0, likely = 0;
    for (int trial = 0; trial < 4000; ++trial) {
      const Row row(random);
      const Result got = evaluate(row, way);
      const Want want = bounded(row, way);
      worst = std::max(worst, over(got.y, want.y));
      worst_logarithm = std::max(worst_logarithm, over(got.logsumexp, want.logsumexp));
      likely = std::max(likely, std::fabs(got.y - want.y.value) / want.y.statistical);
    }
    fmt::print("way {}: y {:.3f} of the bound ({:.3f} of the statistical one), logsumexp {:.3f}\n",
               static_cast<int>(way), worst, likely, worst_logarithm);
    EXPECT_LE(worst, 1);
    EXPECT_LE(worst_logarithm, 1);
    EXPECT_LE(likely, 1);
    EXPECT_GT(worst, 0.1) << "a bound that is never approached proves nothing";
  }
}

/// A common offset of all values adds only the roundings of sums.
TEST(AttentionBounds, ErrorsThatWeightsShareCancel) {
  const std::vector<Bounded> weights{Bounded(1, 0.01, 0.01, false), Bounded(0.5, 0.01, 0.01, false)};
  const WeightedMean<Bounded> mean({weights.data(), Shape{2}}, Bounded(0.0));
  const Bounded near = mean.of([](Index j) { return Bounded(100 + static_cast<double>(j)); });
  EXPECT_NEAR(near.error, 0.01 * (1.0 / 3 + 2.0 / 3) / (1.5 - 0.02), 1e-4)
      << "errors times distances over the least sum";
}

TEST(AttentionBounds, WeightsInLessPrecisionThanDeclaredAreSeen) {
  Random random(7);
  int seen = 0;
  for (int trial = 0; trial < 200; ++trial) {
    const Row row(random);
    if (row.n < 2) continue;
    seen += over(evaluate(row, Way::bf16_weights).y, bounded(row, Way::two_passes).y) > 1;
  }
  EXPECT_GT(seen, 100);
}

/// Kernels leave a value that its format represents unrounded.
TEST(AttentionBounds, InputsThatTheFormatHoldsAreExact) {
  const Arithmetic arithmetic{.inputs = Format::bf16};
  const ArithmeticScope scope(arithmetic);
  EXPECT_EQ(Bounded::input(1.5F).error, 0);
  EXPECT_GT(Bounded::input(1.001F).error, 0);
  EXPECT_GT(factor(Bounded(1.5, 0, 0, false)).error, 0) << "a computed factor need not be one of them";
}

/// Scaling a query first may overflow; the largest float itself does not.
TEST(AttentionBounds, AScaledQueryMayReachTheLargestFloat) {
  const auto overflows = [](double scale, float q) {
    ScaledDot<Bounded> dot{Bounded(scale)};
    dot.add(Bounded(q), Bounded(0x1p-20));
    return dot.value().may_overflow;
  };
  EXPECT_FALSE(overflows(1, FLT_MAX));
  EXPECT_TRUE(overflows(1.0000001, FLT_MAX));
  EXPECT_TRUE(overflows(4, FLT_MAX));
  EXPECT_FALSE(overflows(4, 0x1p125F));
}

}  // namespace
}  // namespace assay::numbers::attention_test
