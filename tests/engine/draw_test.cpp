#include "falsify/engine/draw.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "falsify/engine/inputs.hpp"
#include "falsify/engine/obligation.hpp"

namespace assay::falsify {
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
    // Every strategy, the operation's own where it has one.
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
      const bool long_enough = op->dims[d].max / 2 >= 8200;
      EXPECT_TRUE(!long_enough || furthest[d] > 4096) << op->name << " never reaches far along " << op->dims[d].name;
    }
  }
}

TEST(Draw, LargeCasesAreLargeWithinTheirVolume) {
  const OpDescriptor& op = operation("matmul");
  const ObligationInfo large{.id = "FALSIFY-MM-014", .claim = {}, .by = "large", .if_fails = {}};
  int outputs = 0, sums = 0;
  for (std::uint64_t n = 0; n < 300; ++n) {
    const std::vector<Index> dims = draw(op, large, 1, n).value().dims;
    EXPECT_LE(dims[0] * dims[1] * dims[2], Index{1} << 21);
    outputs += dims[0] > 512 && dims[2] > 512;
    sums += dims[1] > 512;
    for (const Index dim : draw(op, large, 1, n, 4096).value().dims) {
      EXPECT_GE(dim, 2048);
      EXPECT_LE(dim, 4096);
    }
  }
  EXPECT_GT(outputs, 150);
  EXPECT_GT(sums, 30);
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
  // Six standard deviations of the mean and of the variance of n normal draws.
  EXPECT_LT(std::fabs(sum / kN), 6 / std::sqrt(kN));
  EXPECT_LT(std::fabs(squares / kN - 1), 6 * std::sqrt(2.0 / kN));
}

}  // namespace
}  // namespace assay::falsify
