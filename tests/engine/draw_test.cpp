#include "falsify/engine/draw.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/Random.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <set>
#include <tuple>

#include "falsify/engine/inputs.hpp"
#include "falsify/engine/obligation.hpp"

namespace assay::falsify::draw_test {
namespace {

TEST(Draw, TheSameSeedDrawsTheSameCase) {
  const OpDescriptor& op = operation("matmul");
  for (std::uint64_t n = 0; n < 50; ++n) {
    EXPECT_EQ(draw(op, op.obligations[1], 7, n).value(), draw(op, op.obligations[1], 7, n).value());
    EXPECT_NE(draw(op, op.obligations[1], 7, n).value().seed, draw(op, op.obligations[1], 8, n).value().seed);
  }
}

TEST(Draw, EveryStrategyLayoutAndPlacementAndTheEdgesAreDrawn) {
  for (const OpDescriptor* op : operations()) {
    std::set<Strategy> strategies;
    std::set<Layout> layouts;
    std::set<Placement> placements;
    std::set<Index> extents;
    for (const Obligation& o : obligations(op->name))
      for (std::uint64_t n = 0; n < 400; ++n) {
        const Case c = draw(*op, *o.info, 1, n).value();
        strategies.insert(c.strategy);
        layouts.insert(c.layout);
        placements.insert(c.placement);
        extents.insert(c.dims.begin(), c.dims.end());
        for (std::size_t d = 0; d < c.dims.size(); ++d) {
          EXPECT_GE(c.dims[d], op->dims[d].min);
          EXPECT_LE(c.dims[d], op->dims[d].max);
        }
        EXPECT_TRUE(valid(*op, c.dims)) << describe(*op, c);
      }
    // Expect every strategy, including the operation's own if there is one.
    EXPECT_EQ(strategies.size(), static_cast<std::size_t>(kStrategies - !op->directed)) << op->name;
    EXPECT_EQ(layouts.size(), static_cast<std::size_t>(kLayouts));
    EXPECT_EQ(placements.size(), static_cast<std::size_t>(kPlacements));
    for (Index edge : {0, 1, 2, 15, 16, 17, 33, 63, 64, 65, 100, 127, 128, 129, 257, 300}) {
      const bool possible = std::ranges::any_of(op->dims, [&](const DimInfo& dim) {
        return dim.multiple == 1 && dim.multiple_of < 0 && dim.min <= edge && edge <= dim.max;
      });
      EXPECT_TRUE(!possible || extents.contains(edge)) << op->name << " never draws " << edge;
    }
  }
}

TEST(Draw, StrategiesAndFarDimsTakeTurns) {
  for (const OpDescriptor* op : operations()) {
    std::vector<Index> furthest(op->dims.size());
    for (const Obligation& o : obligations(op->name)) {
      const DrawSpec spec = draw_spec(o.info->by);
      std::set<Strategy> strategies;
      for (std::uint64_t n = 0; n < std::max<std::size_t>(60, 12 * spec.strategies.size()); ++n) {
        const Case c = draw(*op, *o.info, 1, n).value();
        strategies.insert(c.strategy);
        for (std::size_t d = 0; d < c.dims.size() && !spec.large; ++d) furthest[d] = std::max(furthest[d], c.dims[d]);
      }
      for (const Strategy strategy : spec.strategies) EXPECT_TRUE(strategies.contains(strategy)) << o.info->id;
    }
    for (std::size_t d = 0; d < op->dims.size(); ++d) {
      const bool long_enough = op->dims[d].max / 2 >= 8200 && op->dims[d].counts != Counts::batch;
      EXPECT_TRUE(!long_enough || furthest[d] > 4096) << op->name << " never reaches far along " << op->dims[d].name;
    }
  }
}

/// Oversized dims must meet every strategy: with three strategies and every twelfth round, they would always meet the
/// same one. The exact obligation tries sums of thousands of terms along each dim, since a bound of that many terms
/// would hide errors.
TEST(Draw, FarDimsMeetEveryStrategy) {
  for (const OpDescriptor* op : operations())
    for (const Obligation& o : obligations(op->name)) {
      const DrawSpec spec = draw_spec(o.info->by);
      if (spec.large || batch_of(*op)) continue;
      std::set<Strategy> strategies;
      std::vector<Index> furthest(op->dims.size());
      const bool exact = o.info->by == "exact";
      for (std::uint64_t n = 0; n < (exact ? 100 : 1000); ++n) {
        const Case c = draw(*op, *o.info, 1, n).value();
        const auto longest = std::ranges::max_element(c.dims);
        if (longest == c.dims.end() || *longest < 2049) continue;
        strategies.insert(c.strategy);
        Index& most = furthest[static_cast<std::size_t>(longest - c.dims.begin())];
        if (c.strategy == Strategy::exact_integers) most = std::max(most, *longest);
      }
      if (strategies.empty()) continue;
      EXPECT_TRUE(exact || strategies.size() >= std::min<std::size_t>(spec.strategies.size(), 3)) << o.info->id;
      for (std::size_t d = 0; d < op->dims.size() && exact; ++d)
        EXPECT_TRUE(op->dims[d].max / 2 < 8200 || furthest[d] > 4096) << o.info->id << " along " << op->dims[d].name;
    }
}

/// Each independent problem costs at least a tile, and cuda-host runs tiles sequentially.
TEST(Draw, FarBatchesOfAttentionHaveFewHeads) {
  int far = 0;
  for (const char* name : {"attention", "attention_backward"}) {
    const OpDescriptor& op = operation(name);
    const auto dim = [&](const Case& c, std::string_view which) {
      return c.dims[static_cast<std::size_t>(std::ranges::find(op.dims, which, &DimInfo::name) - op.dims.begin())];
    };
    for (std::uint64_t n = 0; n < 2000; ++n) {
      const Case c = draw(op, op.obligations[1], 1, n).value();
      // Rounds of extents and of filled cases have their own cost limit.
      if (dim(c, "batch") < 1000 || (n + 5) % 4 == 2) continue;
      ++far;
      EXPECT_LE(dim(c, "batch") * dim(c, "heads"), 2 * 1280) << describe(op, c);
    }
  }
  EXPECT_GT(far, 10);
}

TEST(Draw, LargeCasesAreLargeWithinTheirVolume) {
  const OpDescriptor& op = operation("matmul");
  const ObligationInfo large{.id = "FALSIFY-MM-014", .claim = {}, .by = "large", .if_fails = {}};
  int outputs = 0, sums = 0;
  std::set<Index> terms;  // lengths of sums in large outputs: the remaining volume is drawn as well
  for (std::uint64_t n = 0; n < 400; ++n) {
    const Case c = draw(op, large, 1, n).value();
    if (c.region >= 0) continue;  // joint shapes take the contract's extents
    const std::vector<Index>& dims = c.dims;
    if (dims[0] > 512 && dims[2] > 512) terms.insert(dims[1]);
    EXPECT_LE(dims[0] * dims[1] * dims[2], Index{1} << 21);
    outputs += dims[0] > 512 && dims[2] > 512;
    sums += dims[1] > 512;
    for (const Index dim : draw(op, large, 1, n, {.largest = 4096}).value().dims) {
      EXPECT_GE(dim, 2048);
      EXPECT_LE(dim, 4096);
    }
  }
  EXPECT_GT(outputs, 150);
  EXPECT_GT(sums, 30);
  EXPECT_GE(terms.size(), 3U);
  for (const OpDescriptor* other : operations())
    for (std::uint64_t n = 0; n < 100 && !other->dims.empty(); ++n) {
      const Case c = draw(*other, large, 1, n, {.largest = n % 2 ? 600 : 0}).value();
      EXPECT_TRUE(valid(*other, c.dims)) << describe(*other, c);
    }
}

/// If nothing else can shrink, so does the one long dim that half of the cases keep; dims at their minimum never do.
TEST(Draw, CasesKeepToAnyVolume) {
  const auto volume = [](const std::vector<Index>& dims) {
    return std::accumulate(dims.begin(), dims.end(), Index{1},
                           [](Index product, Index d) { return product * std::max<Index>(d, 1); });
  };
  for (const OpDescriptor* op : operations()) {
    std::vector<Index> least;
    for (const DimInfo& dim : op->dims) least.push_back(std::max<Index>(dim.min, 1));
    make_valid(*op, least);
    for (const Index most : {1, 64, 4096}) {
      const rc::Gen<Case> cases = case_gen(*op, {.strategies = {Strategy::gaussian}, .volume = most});
      for (std::uint64_t n = 0; n < 60; ++n) {
        const Case c = cases(rc::Random(n), 0).value();
        EXPECT_LE(volume(c.dims), std::max(8 * most, volume(least))) << describe(*op, c);
      }
    }
  }
}

TEST(Draw, ExactIntegersAreOddAndUseAllTheBitsAskedFor) {
  for (int bits : {8, 11, 12}) {
    Random random(5);
    const std::vector<float> wide = make_values(Shape{40, 50}, Strategy::exact_integers, true, bits, 50, random);
    for (float x : wide) {
      const auto whole = static_cast<std::int64_t>(std::fabs(x));
      EXPECT_EQ(static_cast<float>(whole), std::fabs(x));
      EXPECT_EQ(whole % 2, 1);
      EXPECT_GE(whole, 1 << (bits - 1));
      EXPECT_LT(whole, 1 << bits);
    }
    const std::vector<float> narrow = make_values(Shape{40, 50}, Strategy::exact_integers, false, bits, 50, random);
    const std::set<float> kinds(narrow.begin(), narrow.end());
    EXPECT_EQ(kinds, (std::set<float>{-1, 0, 1}));
  }
}

TEST(Draw, LongSelectorsStayExact) {
  Random random(5);
  const std::vector<float> v = make_values(Shape{3, 16384}, Strategy::exact_integers, false, 12, 16384, random);
  for (std::size_t row = 0; row < 3; ++row) {
    int count = 0;
    for (std::size_t i = 0; i < 16384; ++i) count += v[row * 16384 + i] != 0;
    EXPECT_LE(count, 4096);
    EXPECT_GT(count, 1000);
  }
}

TEST(Draw, SelectionsHaveAtMostOneOneInARowAndColumn) {
  for (const Shape& shape : {Shape{5, 9}, Shape{9, 5}, Shape{6, 6}, Shape{7}}) {
    Random random(3);
    const std::vector<float> v = make_values(shape, Strategy::distinct_index, false, 12, 9, random);
    const std::size_t columns = static_cast<std::size_t>(shape[shape.rank() - 1]);
    std::vector<int> row(v.size() / columns), column(columns);
    int total = 0;
    for (std::size_t i = 0; i < v.size(); ++i)
      if (v[i] != 0) ++row[i / columns], ++column[i % columns], ++total;
    for (int n : row) EXPECT_LE(n, 1);
    for (int n : column) EXPECT_LE(n, 1);
    EXPECT_EQ(static_cast<std::size_t>(total), std::min(row.size(), columns));
  }
}

TEST(Draw, GaussianIsSymmetricWithUnitVariance) {
  Random random(11);
  double sum = 0, squares = 0;
  constexpr int kN = 200'000;
  for (int i = 0; i < kN; ++i) {
    const double g = random.gaussian();
    sum += g, squares += g * g;
  }
  // Allow six standard deviations of the mean and of the variance of n normal draws.
  EXPECT_LT(std::fabs(sum / kN), 6 / std::sqrt(kN));
  EXPECT_LT(std::fabs(squares / kN - 1), 6 * std::sqrt(2.0 / kN));
}

/// Returns values of a strategy in the tensor with wide values, or in the other tensors.
std::vector<float> values_of(Strategy strategy, bool wide = true, std::uint64_t seed = 5) {
  Random random(seed);
  return make_values(Shape{40, 50}, strategy, wide, 12, 50, random);
}

template <class P>
double share(const std::vector<float>& values, P holds) {
  return static_cast<double>(std::ranges::count_if(values, holds)) / static_cast<double>(values.size());
}

TEST(Draw, StrategiesAreWhatTheyAreNamedFor) {
  const auto magnitude = [](float x) { return std::fabs(x); };
  // Each strategy makes the values extreme in some tensors, and their squares in others.
  int subnormal = 0, huge = 0, of_square_subnormal = 0, of_square_huge = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const float low = std::ranges::max(values_of(Strategy::subnormal, true, seed), {}, magnitude),
                high = std::ranges::max(values_of(Strategy::huge, true, seed), {}, magnitude);
    subnormal += std::fabs(low)<0x1p-126f, of_square_subnormal += std::fabs(low)> 0x1p-80f && low * low < 0x1p-90f;
    huge += std::fabs(high) > 0x1p124f, of_square_huge += std::fabs(high) < 0x1p80f && std::fabs(high) > 0x1p48f;
  }
  for (const int count : {subnormal, huge, of_square_subnormal, of_square_huge}) EXPECT_NEAR(count, 20, 18);
  EXPECT_LT(std::ranges::max(values_of(Strategy::huge, false), {}, magnitude), 0x1p8f);
  const std::vector<float> zeros = values_of(Strategy::signed_zeros);
  EXPECT_NEAR(share(zeros, [](float x) { return x == 0 && std::signbit(x); }), 0.25, 0.05);
  EXPECT_NEAR(share(zeros, [](float x) { return x == 0 && !std::signbit(x); }), 0.25, 0.05);
  EXPECT_GE(std::ranges::min(values_of(Strategy::same_sign)), 0);
  EXPECT_GT(share(values_of(Strategy::same_sign), [](float x) { return x > 0.5f; }), 0.4);
  const std::vector<float> graded = values_of(Strategy::graded);
  EXPECT_GT(std::ranges::max(graded, {}, magnitude), 0x1p10f);
  EXPECT_LT(share(graded, [](float x) { return std::fabs(x) > 0x1p-10f; }), 0.9);
  const std::vector<float> dominant = values_of(Strategy::dominant);
  EXPECT_GE(share(dominant, [](float x) { return std::fabs(x) >= 4096; }), 40.0 / 2000);
  EXPECT_LE(share(dominant, [](float x) { return std::fabs(x) >= 4096; }), 50.0 / 2000);
  const std::vector<float> cancels = values_of(Strategy::cancellation);
  for (std::size_t i = 0; i + 1 < 50; ++i) {
    EXPECT_NE(cancels[i] + cancels[i + 1], 0);
    EXPECT_LT(std::fabs(cancels[i] + cancels[i + 1]), 0x1p-8f);
  }
}

TEST(Draw, EverySpecialValueIsPlanted) {
  bool nan = false, plus = false, minus = false, negative_nan = false;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const std::vector<float> v = values_of(Strategy::nonfinite, true, seed);
    EXPECT_GT(share(v, [](float x) { return !std::isfinite(x); }), 0);
    EXPECT_LE(share(v, [](float x) { return !std::isfinite(x); }), 3.0 / 2000);
    for (float x : v) {
      nan = nan || std::isnan(x);
      negative_nan = negative_nan || (std::isnan(x) && std::signbit(x));
      plus = plus || x == INFINITY;
      minus = minus || x == -INFINITY;
    }
  }
  EXPECT_TRUE(nan && plus && minus && negative_nan);
}

/// Where contracts pin payloads, half of the calls with NaNs have signalling ones, and no other calls have any.
TEST(Draw, NaNsAreSignallingWherePayloadsArePinned) {
  const auto signalling = [](std::string_view name) {
    int calls = 0;
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
      Case c;
      c.dims.assign(operation(name).dims.size(), 6);
      c.strategy = Strategy::nonfinite;
      c.seed = seed;
      bool any = false;
      for (const auto& values : make_problem(operation(name), c, {}).values)
        for (const float x : values) any = any || (std::isnan(x) && (std::bit_cast<std::uint32_t>(x) & 0x400000U) == 0);
      calls += any;
    }
    return calls;
  };
  for (const char* pinned : {"transpose", "tensor_layout", "embedding"})
    EXPECT_NEAR(signalling(pinned), 70, 30) << pinned;
  for (const char* other : {"matmul", "softmax", "nf4_quantize"}) EXPECT_EQ(signalling(other), 0) << other;
}

/// The last places of a long dim decide: by large values or by ones that are not finite, and often by the very last.
TEST(Draw, TheTailOfALongDimDecides) {
  const OpDescriptor& op = operation("matmul");
  for (const Index k : {Index{4096}, Index{8195}})
    for (const Strategy strategy : {Strategy::dominant, Strategy::nonfinite}) {
      int tails = 0, last = 0;
      for (std::uint64_t seed = 0; seed < 100; ++seed) {
        Case c;
        c.dims = {2, k, 3};
        c.strategy = strategy;
        c.seed = seed;
        const std::vector<float> b = make_problem(op, c, {}).values[1];
        const auto decides = [&](Index from, Index to) {
          return std::any_of(b.begin() + from * 3, b.begin() + to * 3, [](float x) { return !(std::fabs(x) < 4096); });
        };
        const bool tail = decides(k - 16, k) && (strategy == Strategy::nonfinite || !decides(0, k - 16));
        tails += tail;
        last += tail && decides(k - 1, k);
      }
      EXPECT_EQ(tails > 50, k > 4096) << k << ' ' << name(strategy);
      EXPECT_EQ(last > 30, k > 4096) << k << ' ' << name(strategy);
    }
}

/// A dim of two values has each as often: linear without inputs and without a bias is one case in some dozens.
TEST(Draw, ADimOfTwoValuesHasBothAsOften) {
  const OpDescriptor& op = operation("linear");
  const auto d = static_cast<std::size_t>(std::ranges::find(op.dims, "biases", &DimInfo::name) - op.dims.begin());
  int without = 0, all = 0;
  for (const Obligation& o : obligations(op.name))
    for (std::uint64_t n = 0; n < 100; ++n, ++all) without += draw(op, *o.info, 1, n).value().dims[d] == 0;
  EXPECT_NEAR(without, all / 2, all / 10);
}

/// NaNs are quiet, of either sign, with distinct payloads: kernels must not depend on the payload.
TEST(Draw, NaNsAreQuietWithPayloadsOfTheirOwn) {
  std::set<std::uint32_t> payloads;
  int all = 0, negative = 0, infinities = 0, zeros = 0, negative_zeros = 0;
  constexpr int kSeeds = 400;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed)
    for (const float x : values_of(Strategy::nonfinite, true, seed)) {
      infinities += std::isinf(x);
      zeros += x == 0;
      negative_zeros += x == 0 && std::signbit(x);
      if (!std::isnan(x)) continue;
      const auto bits = std::bit_cast<std::uint32_t>(x);
      EXPECT_EQ(bits & 0x7fc00000U, 0x7fc00000U);
      EXPECT_NE(bits & 0x3fffffU, 0U);
      payloads.insert(bits & 0x3fffffU);
      negative += std::signbit(x);
      ++all;
    }
  EXPECT_GT(payloads.size(), static_cast<std::size_t>(all) * 99 / 100);
  EXPECT_GT(*payloads.rbegin(), 0x3f0000U);
  EXPECT_NEAR(static_cast<double>(negative) / all, 0.5, 6 * std::sqrt(0.25 / all));
  // One to three non-finite values per tensor, half of them NaN.
  EXPECT_NEAR(all + infinities, 2 * kSeeds, 6 * std::sqrt(kSeeds * 2 / 3.0));
  EXPECT_NEAR(static_cast<double>(all) / (all + infinities), 0.5, 6 * std::sqrt(0.25 / (all + infinities)));
  EXPECT_NEAR(zeros / (2000.0 * kSeeds), 0.25, 0.005);
  EXPECT_NEAR(negative_zeros / (2000.0 * kSeeds), 0.125, 0.005);
}

TEST(Draw, FarDimsSquaresAndParametersAreDrawn) {
  const OpDescriptor& op = operation("matmul");
  int far = 0, square = 0;
  for (std::uint64_t n = 0; n < 1000; ++n) {
    const Case c = draw(op, op.obligations[1], 1, n).value();
    far += std::ranges::any_of(c.dims, [](Index d) { return d > 1025; });
    square += c.dims[0] == c.dims[1] && c.dims[1] == c.dims[2] && c.dims[0] > 4;
  }
  EXPECT_GE(far, 1000 / 12);
  // Rounds of shapes, of extents and of filled cases reach as far.
  EXPECT_LE(far, 1000 / 12 + 1000 / 8 + 1000 * 3 / 16);
  EXPECT_GT(square, 60);
  const OpDescriptor& step = operation("adamw_step");
  for (std::size_t p = 0; p < step.params.size(); ++p) {
    std::set<double> drawn;
    for (std::uint64_t n = 0; n < 200; ++n) drawn.insert(draw(step, step.obligations[1], 1, n).value().params[p]);
    EXPECT_GT(drawn.size(), step.params[p].choices.empty() ? 20U : 1U) << step.params[p].name;
    EXPECT_GE(*drawn.begin(), step.params[p].min);
    EXPECT_LE(*drawn.rbegin(), step.params[p].max);
  }
}

TEST(Draw, StatisticalCasesHaveLongSums) {
  const OpDescriptor& op = operation("matmul");
  const auto statistical = std::ranges::find(op.obligations, "statistical", &ObligationInfo::by);
  int long_dims = 0;
  for (std::uint64_t n = 0; n < 100; ++n)
    long_dims += std::ranges::any_of(draw(op, *statistical, 1, n).value().dims, [](Index d) { return d >= 191; });
  EXPECT_GT(long_dims, 40);  // of all cases; the long dim may shrink if the product of dims is too large
}

TEST(Draw, IntegersReachTheEndsOfTheirRange) {
  const OpDescriptor& op = operation("embedding");
  const auto ids = static_cast<std::size_t>(
      std::ranges::find_if(op.tensors, [](const TensorInfo& t) { return t.dtype == DType::i32; }) - op.tensors.begin());
  Case c;
  for (const DimInfo& dim : op.dims) c.dims.push_back(std::min<Index>(dim.max, 1000));
  c.seed = 2;  // a seed that draws arbitrary ids
  const Problem problem = make_problem(op, c, {});
  const auto most = static_cast<float>(op.tensors[ids].most(c.dims)),
             least = static_cast<float>(op.tensors[ids].least(c.dims));
  EXPECT_GT(most - least, 100);
  EXPECT_NEAR(share(problem.values[ids], [&](float x) { return x == most; }), 0.05, 0.03);
  EXPECT_NEAR(share(problem.values[ids], [&](float x) { return x == least; }), 0.05, 0.03);
  c.strategy = Strategy::distinct_index;
  const Problem counted = make_problem(op, c, {});
  EXPECT_EQ(std::set<float>(counted.values[ids].begin(), counted.values[ids].end()).size(), counted.values[ids].size());
}

TEST(Draw, ValuesOfTheCaseItselfAreTaken) {
  const OpDescriptor& op = operation("matmul");
  Case c;
  c.dims = {1, 2, 1};
  c.values = {{1, 2}, {3, 4}, {}};
  EXPECT_EQ(make_problem(op, c, {}).values, c.values);
}

TEST(Draw, WhatAnOperationDirectsIsItsOwn) {
  const OpDescriptor& op = operation("rmsnorm");
  ASSERT_TRUE(op.directed);
  Case c;
  c.dims = {3, 40};
  c.params = {1e-5};
  const Problem usual = make_problem(op, c, {});
  c.strategy = Strategy::directed;
  EXPECT_NE(make_problem(op, c, {}).values, usual.values);
}

// In rows of any length an error of one term is then an error of the sum.
TEST(Draw, SomeRowsOfSoftmaxHaveAHandfulOfLogitsThatMatter) {
  const OpDescriptor& op = operation("softmax");
  constexpr Index kRows = 400;
  for (const Index n : {64, 1000}) {
    Case c;
    c.dims = {kRows, n};
    c.strategy = Strategy::directed;
    const std::vector<float> x = make_problem(op, c, {}).values[0];
    int found = 0;
    for (auto row = x.begin(); row != x.end(); row += n) {
      const auto near = [&](float logit) { return logit > -13 && logit < 5; };
      const auto far = [&](float logit) { return logit > -70 && logit < -50; };
      const auto matter = std::count_if(row, row + n, near);
      found += matter >= 1 && matter <= 16 && matter + std::count_if(row, row + n, far) == n;
    }
    EXPECT_NEAR(found, kRows / 8, kRows / 16) << n;
  }
}

TEST(Draw, ObligationsGetTheInputsThatTheyAreFor) {
  using enum Strategy;
  EXPECT_EQ(draw_spec("nonfinite").strategies, std::vector<Strategy>{nonfinite});
  EXPECT_EQ(draw_spec("statistical").strategies, std::vector<Strategy>{gaussian});
  EXPECT_EQ(draw_spec("exact").strategies, (std::vector<Strategy>{one_hot, distinct_index, exact_integers}));
  EXPECT_TRUE(draw_spec("statistical").long_reductions);
  EXPECT_TRUE(draw_spec("large").large);
  const OpDescriptor& op = operation("rmsnorm");
  const auto obligation = [&](std::string_view by) {
    return *std::ranges::find(op.obligations, by, &ObligationInfo::by);
  };
  for (std::uint64_t n = 0; n < 20; ++n) EXPECT_EQ(draw(op, obligation("nonfinite"), 1, n).value().strategy, nonfinite);
  int of_its_own = 0;
  for (std::uint64_t n = 0; n < 200; ++n)
    of_its_own += draw(op, obligation("differential"), 1, n).value().strategy == Strategy::directed;
  EXPECT_EQ(of_its_own > 30, op.directed);
}

TEST(Draw, OneCaseInSixHasWholeTiles) {
  const OpDescriptor& op = operation("matmul");
  int whole = 0;
  for (std::uint64_t number = 0; number < 600; ++number) {
    const Case c = draw(op, op.obligations.front(), 1, number).value();
    whole += c.layout == Layout::tight &&
             std::ranges::all_of(c.dims, [](Index n) { return n < 4 || n % (n < 16 ? 4 : 16) == 0; });
  }
  EXPECT_GT(whole, 50);
}

/// Expects `count` of `of` draws to match the share within six standard deviations.
void expect_share(int count, int of, double share) {
  EXPECT_NEAR(static_cast<double>(count) / of, share, 6 * std::sqrt(share * (1 - share) / of));
}

/// Returns draws of a parameter, the only one of its operation.
std::vector<double> drawn_of(const ParamInfo& param, int draws) {
  OpDescriptor op{};
  op.params = {&param, 1};
  Random random(7);
  std::vector<double> values;
  for (int i = 0; i < draws; ++i) values.push_back(draw_params(op, random).at(0));
  return values;
}

int count_if(const std::vector<double>& values, const auto& holds) {
  return static_cast<int>(std::ranges::count_if(values, holds));
}

TEST(Draw, ParametersAreTypicalOrSpecialOrAnything) {
  constexpr int kDraws = 40'000;
  const auto typical = [](double x) { return x == 0.75; };
  // Ranges of at least two orders of magnitude are drawn on a log scale; smaller ranges, and those that start at or
  // below 0, uniformly.
  for (const auto& [least, most, middle] : {std::tuple{0.5, 50.0, 5.0},
                                            {0.5, 5000.0, 50.0},
                                            {0.5, 49.75, 25.125},
                                            {0.0, 50.0, 25.0},
                                            {-2.0, 500.0, 249.0}}) {
    const std::vector<double> values = drawn_of({"p", least, most, 0.75, ""}, kDraws);
    expect_share(count_if(values, typical), kDraws, 0.4);
    std::set<double> special{least, most};
    for (const double x : {-1.0, 0.0, 1.0})
      if (least < x && x < most) special.insert(x);
    for (const double value : special)
      expect_share(count_if(values, [&](double x) { return x == value; }), kDraws,
                   0.3 / static_cast<double>(special.size()));
    const auto below = [&](double x) { return !typical(x) && !special.contains(x) && x < middle; };
    expect_share(count_if(values, below), kDraws, 0.15);
    EXPECT_GE(std::ranges::min(values), least);
    EXPECT_LE(std::ranges::max(values), most);
    for (const double x : values) EXPECT_EQ(x, static_cast<double>(static_cast<float>(x)));
  }
  const std::vector<double> whole = drawn_of({"p", -2, 20, 3, "", true}, kDraws);
  for (const double x : whole) EXPECT_EQ(x, std::round(x));
  // -2, -1, 0, 1 and 20 are special values; the others are reached by rounding.
  const double drawn = 0.3 / 22;
  expect_share(count_if(whole, [](double x) { return x == 3; }), kDraws, 0.4 + drawn);
  expect_share(count_if(whole, [](double x) { return x == 4; }), kDraws, drawn);
  for (const double end : {-2.0, 20.0})
    expect_share(count_if(whole, [&](double x) { return x == end; }), kDraws, 0.3 / 5 + drawn / 2);
  const double choices[] = {1, 5, 7};
  ParamInfo one_of{"p", 1, 7, 1, ""};
  one_of.choices = choices;
  const std::vector<double> chosen = drawn_of(one_of, kDraws);
  for (const double choice : choices)
    expect_share(count_if(chosen, [&](double x) { return x == choice; }), kDraws, 1.0 / 3);
}

/// Returns an operation whose output has the dims as its extents.
OpDescriptor of_dims(std::span<const DimInfo> dims) {
  static const TensorInfo y = [] {
    TensorInfo info;
    info.name = "y";
    info.role = Role::out;
    info.shape = [](std::span<const Index> extents) {
      Shape shape;
      for (const Index extent : extents) shape.push_back(extent);
      return shape;
    };
    return info;
  }();
  OpDescriptor op{};
  op.dims = dims;
  op.tensors = {&y, 1};
  return op;
}

TEST(Draw, ManyProblemsThatStandAloneHaveFewOfAllElse) {
  const auto most_beside = [](Counts counts, auto many) {
    const DimInfo dims[] = {{"beside", 1, 100, ""},
                            {"problems", 1, 2000, "", 1, -1, {}, true, Counts::batch},
                            {"heads", 1, 4000, "", 1, 0, {}, false, counts}};
    const OpDescriptor op = of_dims(dims);
    Index most = 0;
    for (std::uint64_t n = 0; n < 20000; ++n) {
      const std::vector<Index> drawn = case_gen(op, draw_spec("differential"))(rc::Random(n), 0).value().dims;
      if (many(drawn[1])) most = std::max(most, drawn[0]);
    }
    return most;
  };
  const auto beyond = [](Index n) { return n > 300; };
  const auto just = [](Index n) { return n == 300; };
  EXPECT_EQ(most_beside(Counts::heads, beyond), 2);
  EXPECT_GT(most_beside(Counts::places, beyond), 2);
  EXPECT_GT(most_beside(Counts::heads, just), 2);
}

TEST(Simpler, ValuesBecomeZeroOneWholeOrHalfAsLarge) {
  TensorInfo tensors[2];
  tensors[0].name = "x";
  tensors[1].name = "ids";
  tensors[1].dtype = DType::i32;
  tensors[1].least = [](std::span<const Index>) { return Index{-3}; };
  OpDescriptor op{};
  op.tensors = tensors;
  const auto simpler_values = [&](std::vector<float> x, std::vector<float> ids) {
    Case c;
    c.values = {x, ids};
    std::vector<float> found;
    for (const Case& next : simpler(op, draw_spec("differential"), c)) {
      EXPECT_EQ(next.values.size(), 2U);
      const std::size_t t = x.empty() ? 1 : 0;
      found.push_back(next.values[t].at(0));
    }
    return found;
  };
  using Values = std::vector<float>;
  EXPECT_EQ(simpler_values({0}, {}), Values{});
  EXPECT_EQ(simpler_values({1}, {}), Values{0});
  EXPECT_EQ(simpler_values({-0.0F}, {}), (Values{0, 1}));
  EXPECT_EQ(simpler_values({-1}, {}), (Values{0, 1}));
  EXPECT_EQ(simpler_values({2}, {}), (Values{0, 1}));
  EXPECT_EQ(simpler_values({-2}, {}), (Values{0, 1}));
  EXPECT_EQ(simpler_values({0.25F}, {}), (Values{0, 1, 0}));
  EXPECT_EQ(simpler_values({1.75F}, {}), (Values{0, 1, 2}));
  EXPECT_EQ(simpler_values({-6.25F}, {}), (Values{0, 1, -6}));
  EXPECT_EQ(simpler_values({3}, {}), (Values{0, 1, 1}));
  EXPECT_EQ(simpler_values({-7}, {}), (Values{0, 1, -3}));
  EXPECT_EQ(simpler_values({999'999.5F}, {}), (Values{0, 1, 1e6F}));
  EXPECT_EQ(simpler_values({1'000'000.5F}, {}), (Values{0, 1, 500'000})) << "from there on halves, whole or not";
  EXPECT_EQ(simpler_values({0x1p100F}, {}), (Values{0, 1, 0x1p99F}));
  EXPECT_EQ(simpler_values({INFINITY}, {}), (Values{0, 1}));
  EXPECT_EQ(simpler_values({NAN}, {}), (Values{0, 1}));
  EXPECT_EQ(simpler_values({}, {5}), Values{-3});
  EXPECT_EQ(simpler_values({}, {-3}), Values{});
  tensors[1].least = nullptr;
  EXPECT_EQ(simpler_values({}, {5}), Values{}) << "packed bits have no simpler ones";
}

TEST(Simpler, EachStepChangesOneThingSimplestFirst) {
  const DimInfo dims[] = {{"m", 0, 100, ""}, {"k", 2, 100, ""}};
  const ParamInfo params[] = {{"eps", 0.5, 2, 1, ""},
                              {"window", 0, 9, 4, "", true},
                              {"shift", -3, 9, 4, "", true},
                              {"count", 1, 9, 4, "", true}};
  OpDescriptor op = of_dims(dims);
  op.params = params;
  Case c;
  c.dims = {20, 7};
  c.params = {1.5, 7, 7, 7};
  c.strategy = Strategy::graded;
  c.layout = Layout::mixed;
  c.placement = Placement::page_start;
  c.prelude = {1, 3};
  std::vector<Case> want;
  const auto with = [&](auto change) { change(want.emplace_back(c)); };
  for (const Index m : {0, 1, 2, 3, 10, 15, 19}) with([&](Case& n) { n.dims[0] = m; });
  for (const Index k : {2, 3, 6}) with([&](Case& n) { n.dims[1] = k; });
  with([](Case& n) { n.params[0] = 1; });
  with([](Case& n) { n.params[1] = 4; });
  with([](Case& n) { n.params[1] = 0; });
  with([](Case& n) { n.params[2] = 4; });
  with([](Case& n) { n.params[2] = 0; });
  with([](Case& n) { n.params[3] = 4; });
  with([](Case& n) { n.layout = Layout::tight; });
  with([](Case& n) { n.placement = Placement::sentinels; });
  with([](Case& n) { n.strategy = Strategy::exact_integers; });
  with([](Case& n) { n.strategy = Strategy::gaussian; });
  with([](Case& n) { n.prelude[0] = 0; });
  with([](Case& n) { n.prelude[1] = 2; });
  const std::vector<Case> got =
      simpler(op, {.strategies = {Strategy::exact_integers, Strategy::gaussian, Strategy::graded, Strategy::huge}}, c);
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i], want[i]) << i << ": " << describe(op, got[i]);
}

/// Each number encodes its index, up to the largest integer that the format represents exactly.
TEST(Draw, IndexesAreDistinctAsFarAsTheirBitsReach) {
  for (const auto& [bits, limit] :
       {std::pair{8, std::size_t{255}}, {11, std::size_t{2047}}, {12, (std::size_t{1} << 24) - 1}}) {
    Random random(1);
    const std::vector<float> v =
        make_values(Shape{static_cast<Index>(limit + 2)}, Strategy::distinct_index, true, bits, 1, random);
    EXPECT_EQ(v[0], 1);
    EXPECT_EQ(v[limit / 2], static_cast<float>(limit / 2 + 1));
    EXPECT_EQ(v[limit - 1], static_cast<float>(limit));
    EXPECT_EQ(v[limit], 1) << "and from the first on again";
    EXPECT_EQ(v[limit + 1], 2);
  }
}

}  // namespace
}  // namespace assay::falsify::draw_test
