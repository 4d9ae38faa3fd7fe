#include "falsify/engine/comparator.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace assay::falsify::comparator_test {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

Bounded bounded(double value, double error, double statistical = 0) { return {value, error, statistical, false}; }

bool accepts(Tier tier, float got, const Bounded& want) {
  const Outcome outcome = compare(tier, "c", Shape{1}, std::span(&got, 1), std::span(&want, 1));
  EXPECT_EQ(outcome.elements, 1);
  return outcome.kind == Outcome::Kind::passed;
}

TEST(Comparator, AcceptsOnlyWithinTheBound) {
  EXPECT_TRUE(accepts(Tier::worst_case, 1.5f, bounded(1, 0.5)));
  EXPECT_TRUE(accepts(Tier::worst_case, 0.5f, bounded(1, 0.5)));
  EXPECT_FALSE(accepts(Tier::worst_case, std::nextafter(1.5f, 2.0f), bounded(1, 0.5)));
  EXPECT_FALSE(accepts(Tier::worst_case, std::nextafter(0.5f, 0.0f), bounded(1, 0.5)));
}

TEST(Comparator, AnOutputOfAnotherSizeHasNoElementToShow) {
  const float got[] = {1, 2, 3};
  const Bounded want[] = {bounded(1, 0.5), bounded(2, 0.5), bounded(3, 0.5)};
  const Outcome outcome = compare(Tier::worst_case, "c", Shape{3}, std::span(got, 2), want);
  ASSERT_TRUE(outcome.finding);
  EXPECT_EQ(name(outcome.finding->kind), "shape");
  EXPECT_EQ(outcome.finding->message, "c has 2 elements where 3 are expected");
  EXPECT_EQ(outcome.finding->tensor, "c");
  EXPECT_EQ(outcome.finding->got, 0);
  EXPECT_EQ(outcome.finding->want, 0);
  EXPECT_EQ(outcome.finding->bound, 0);
  EXPECT_EQ(outcome.elements, 0);
}

TEST(Comparator, StatisticalTierUsesItsOwnBound) {
  EXPECT_TRUE(accepts(Tier::worst_case, 1.25f, bounded(1, 0.5, 0.125)));
  EXPECT_FALSE(accepts(Tier::statistical, 1.25f, bounded(1, 0.5, 0.125)));
}

TEST(Comparator, NanIsNeverWithinABound) {
  EXPECT_FALSE(accepts(Tier::worst_case, kNan, bounded(1, 1e30)));
  EXPECT_FALSE(accepts(Tier::worst_case, 1.0f, bounded(1, kNan)));
  EXPECT_FALSE(accepts(Tier::exact, kNan, bounded(0, 0)));
}

TEST(Comparator, ClassesMustAgree) {
  EXPECT_FALSE(accepts(Tier::worst_case, kInf, bounded(3e38, 1e30)));
  EXPECT_FALSE(accepts(Tier::worst_case, 1.0f, bounded(kInf, kInf)));
  EXPECT_FALSE(accepts(Tier::worst_case, -kInf, bounded(kInf, 0)));
  EXPECT_FALSE(accepts(Tier::worst_case, kInf, bounded(kNan, 0)));
  EXPECT_TRUE(accepts(Tier::worst_case, kInf, bounded(kInf, 0)));
  EXPECT_TRUE(accepts(Tier::worst_case, kNan, bounded(kNan, 0)));
}

TEST(Comparator, WhereSumsMayOverflowAnyNonfiniteClassPasses) {
  Bounded want = bounded(3e38, 1e32);
  want.may_overflow = true;
  EXPECT_TRUE(accepts(Tier::worst_case, kInf, want));
  EXPECT_TRUE(accepts(Tier::worst_case, kNan, want));
  EXPECT_TRUE(accepts(Tier::worst_case, 3e38f, want));
  EXPECT_FALSE(accepts(Tier::worst_case, 1.0f, want));
  want.value = kInf;  // an infinite input forces the infinity
  EXPECT_FALSE(accepts(Tier::worst_case, 1.0f, want));
}

TEST(Comparator, ExactTierIgnoresTheSignOfZeroAndBitsDoNot) {
  EXPECT_TRUE(accepts(Tier::exact, -0.0f, bounded(0, 0)));
  EXPECT_FALSE(accepts(Tier::bits, -0.0f, bounded(0, 0)));
  EXPECT_FALSE(accepts(Tier::exact, std::nextafter(4095.0f, 5000.0f), bounded(4095, 1)));
}

TEST(Comparator, AnEmptySumIsPlusZero) {
  Bounded want = bounded(0, 0);
  want.empty = true;
  for (const Tier tier : {Tier::exact, Tier::worst_case, Tier::statistical}) {
    EXPECT_TRUE(accepts(tier, -0.0f, bounded(0, 0)));
    EXPECT_TRUE(accepts(tier, 0.0f, want));
    EXPECT_FALSE(accepts(tier, -0.0f, want));
  }
}

/// A value whose bound contains zero is no evidence against a kernel that writes zeros; infinities and NaN are.
TEST(Comparator, CountsValuesForWhichZeroWouldPass) {
  const std::vector<Bounded> want{bounded(1e-9, 1e-8),  bounded(1, 1e-8),     bounded(0, 0),
                                  bounded(-2e-9, 1e-8), bounded(INFINITY, 0), bounded(NAN, 0)};
  const std::vector<float> got{0, 1, 0, 0, INFINITY, NAN};
  const Outcome outcome = compare(Tier::worst_case, "c", Shape{6}, got, want);
  EXPECT_EQ(outcome.kind, Outcome::Kind::passed);
  EXPECT_EQ(outcome.nonzero, 5);
  EXPECT_EQ(outcome.zero_passes, 2);
  Outcome twice = outcome;
  twice &= outcome;
  EXPECT_EQ(twice.zero_passes, 4);
  EXPECT_EQ(compare(Tier::exact, "c", Shape{6}, got, want).zero_passes, 0);
}

TEST(Comparator, CountsElementsAndNamesTheFirstWrongOne) {
  const std::vector<float> got{1, 2, 3, 9, 5, 7};
  const std::vector<Bounded> want{bounded(1, 0), bounded(2, 0), bounded(3, 0),
                                  bounded(4, 0), bounded(0, 0), bounded(6, 0)};
  const Outcome outcome = compare(Tier::worst_case, "c", Shape{2, 3}, got, want);
  EXPECT_EQ(outcome.elements, 6);
  EXPECT_EQ(outcome.nonzero, 5);
  ASSERT_TRUE(outcome.finding.has_value());
  EXPECT_EQ(outcome.finding->index, (Shape{1, 0}));
}

TEST(Comparator, BitsOfTwoRuns) {
  const std::vector<float> x{1, 2}, y{1, std::nextafter(2.0f, 3.0f)};
  EXPECT_EQ(compare_bits("c", Shape{2}, x, x, "").kind, Outcome::Kind::passed);
  EXPECT_EQ(compare_bits("c", Shape{2}, x, y, "").kind, Outcome::Kind::falsified);
}

TEST(Comparator, TheMapOfBitsShowsWhereOneIsNan) {
  const float other_nan = -kNan;
  const std::vector<float> x{1, kNan, 2, kNan}, y{1, 2, kNan, other_nan};
  const Outcome outcome = compare_bits("c", Shape{4}, x, y, "");
  ASSERT_TRUE(outcome.finding && outcome.finding->errors);
  EXPECT_EQ(outcome.finding->errors->cells, (std::vector<double>{0, kInf, kInf, 0}));
}

TEST(Comparator, RelationsFailOnNan) {
  const std::vector<double> got{kNan}, want{1}, bound{1e300};
  EXPECT_EQ(compare_within("c", Shape{1}, got, want, bound).kind, Outcome::Kind::falsified);
}

TEST(Comparator, EveryElementIsCompared) {
  const Shape shape{3, 2};
  const std::vector<float> right{1, 2, 3, 4, 5, 6};
  std::vector<Bounded> want;
  for (float x : right) want.push_back(bounded(x, 0.25, 0.125));
  const std::vector<double> held = widened(right), bound(6, 0.25);
  for (std::size_t wrong = 0; wrong < right.size(); ++wrong) {
    std::vector<float> got = right;
    got[wrong] += 1;
    for (const Tier tier : {Tier::exact, Tier::bits, Tier::worst_case, Tier::statistical}) {
      const Outcome outcome = compare(tier, "c", shape, got, want);
      EXPECT_EQ(outcome.kind, Outcome::Kind::falsified) << wrong;
      ASSERT_TRUE(outcome.finding.has_value());
      EXPECT_EQ(outcome.finding->index, (Shape{static_cast<Index>(wrong / 2), static_cast<Index>(wrong % 2)}));
      EXPECT_EQ(outcome.finding->tensor, "c");
      EXPECT_EQ(outcome.finding->want, right[wrong]);
      EXPECT_EQ(outcome.finding->got, got[wrong]);
      EXPECT_TRUE(outcome.finding->errors.has_value());
    }
    EXPECT_EQ(compare_bits("c", shape, got, right, "").kind, Outcome::Kind::falsified) << wrong;
    EXPECT_EQ(compare_within("c", shape, widened(got), held, bound).kind, Outcome::Kind::falsified) << wrong;
  }
  EXPECT_EQ(compare_within("c", shape, held, held, bound).kind, Outcome::Kind::passed);
}

TEST(Comparator, TheLargestShareOfTheBoundIsReported) {
  const std::vector<float> got{1.0625f, 2.125f};
  const std::vector<Bounded> want{bounded(1, 0.25), bounded(2, 0.25)};
  const Outcome within = compare(Tier::worst_case, "c", Shape{2}, got, want);
  EXPECT_EQ(within.kind, Outcome::Kind::passed);
  EXPECT_EQ(within.worst, 0.5);
  const std::vector<Bounded> narrow{bounded(1, 0.25), bounded(2, 0.03125)};
  EXPECT_EQ(compare(Tier::worst_case, "c", Shape{2}, got, narrow).worst, 4);
  const Outcome relation =
      compare_within("c", Shape{2}, widened(got), std::vector<double>{1, 2}, std::vector<double>{0.25, 0.25});
  EXPECT_EQ(relation.worst, 0.5);
  EXPECT_EQ(relation.nonzero, 2);
}

TEST(Comparator, ARelationUnderAnInfiniteBoundHoldsForAnything) {
  const std::vector<double> inf{INFINITY}, nan{NAN}, one{1}, unbounded{INFINITY}, quarter{0.25};
  const auto holds = [](const std::vector<double>& got, const std::vector<double>& want,
                        const std::vector<double>& bound) {
    return compare_within("c", Shape{1}, got, want, bound).kind == Outcome::Kind::passed;
  };
  for (const auto& got : {inf, nan, one})
    for (const auto& want : {inf, nan, one}) {
      EXPECT_TRUE(holds(got, want, unbounded)) << got[0] << ", " << want[0];
      EXPECT_EQ(holds(got, want, quarter),
                std::isnan(got[0]) == std::isnan(want[0]) && std::isinf(got[0]) == std::isinf(want[0]))
          << got[0] << ", " << want[0];
    }
  EXPECT_FALSE(holds(inf, {-INFINITY}, quarter));
  EXPECT_EQ(compare_within("c", Shape{1}, nan, one, unbounded).worst, 0);
}

TEST(Comparator, OutcomesTogetherKeepTheLargestShareAndCountEverything) {
  for (const bool first : {false, true}) {
    Outcome x, y;
    (first ? x : y).worst = 0.75;
    (first ? y : x).worst = 0.25;
    x.elements = 3, y.elements = 4, x.nonzero = 1, y.nonzero = 2;
    x &= y;
    EXPECT_EQ(x.worst, 0.75);
    EXPECT_EQ(x.elements, 7);
    EXPECT_EQ(x.nonzero, 3);
  }
  const std::vector<double> want{-1, 0, 0, 2}, bound(4, 1.0);
  EXPECT_EQ(compare_within("c", Shape{4}, want, want, bound).nonzero, 2);
}

TEST(Comparator, BoundsAreInfiniteWhereAKernelMayOverflow) {
  Bounded overflowing = bounded(3e38, 1e32);
  overflowing.may_overflow = true;
  EXPECT_EQ(bounds_of({bounded(1, 0.5), overflowing}), (std::vector<double>{0.5, INFINITY}));
}

TEST(Comparator, AMissSaysHowManyTimesTheBoundItIs) {
  const auto message = [](const Bounded& want) {
    const float got = 2;
    return compare(Tier::worst_case, "c", Shape{1}, std::span(&got, 1), std::span(&want, 1)).finding->message;
  };
  EXPECT_EQ(message(bounded(1, 0.25)), "got 2, want 1: off by 1, 4 times the bound 0.25");
  EXPECT_EQ(message(bounded(1, 0)), "got 2, want 1 exactly");
}

TEST(Comparator, IndicesAreRowMajor) {
  EXPECT_EQ(index_of(Shape{2, 3, 4}, 0), (Shape{0, 0, 0}));
  EXPECT_EQ(index_of(Shape{2, 3, 4}, 23), (Shape{1, 2, 3}));
  EXPECT_EQ(index_of(Shape{2, 3, 4}, 17), (Shape{1, 1, 1}));
}

TEST(Comparator, NarrowOutputsHoldWhatTheirFormatHolds) {
  const Bounded third = bounded(1.0 / 3, 0);
  const float half = 0x1.554p-2f;  // the nearest binary16
  EXPECT_EQ(compare(Tier::exact, "c", Shape{1}, std::span(&half, 1), std::span(&third, 1), DType::f16).kind,
            Outcome::Kind::passed);
  EXPECT_EQ(compare(Tier::exact, "c", Shape{1}, std::span(&half, 1), std::span(&third, 1)).kind,
            Outcome::Kind::falsified);
}

}  // namespace
}  // namespace assay::falsify::comparator_test
