// The shrinker on failures whose smallest case is known.
#include "falsify/engine/shrink.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "falsify/engine/draw.hpp"

namespace assay::falsify {
namespace {

const ObligationInfo& differential() {
  const OpDescriptor& op = operation("matmul");
  return *std::ranges::find(op.obligations, "differential", &ObligationInfo::by);
}

/// The first drawn case that fails, shrunk.
Shrunk shrunk(const Fails& fails) {
  const OpDescriptor& op = operation("matmul");
  for (std::uint64_t n = 0;; ++n) {
    const auto drawn = draw(op, differential(), 3, n);
    if (fails(drawn.value())) return shrink(op, differential(), drawn, {}, fails, std::chrono::seconds(20));
  }
}

TEST(Shrink, DescendsToTheSmallestDims) {
  const Shrunk s = shrunk([](const Case& c) { return c.dims[0] >= 3 && c.dims[1] >= 17 && c.dims[2] >= 1; });
  EXPECT_EQ(s.smallest.dims, (std::vector<Index>{3, 17, 1}));
  EXPECT_TRUE(s.complete);
  EXPECT_EQ(s.smallest.layout, Layout::tight);
  EXPECT_EQ(s.smallest.placement, Placement::sentinels);
}

TEST(Shrink, FindsSmallCasesThatGreedyStepsJumpOver) {
  // Odd products: halving and decrementing one dim at a time meets even ones.
  const Shrunk s = shrunk([](const Case& c) { return c.dims[0] * c.dims[1] % 2 == 1 && c.dims[0] != 1 && c.dims[1] != 1; });
  EXPECT_EQ(s.smallest.dims[0], 3);
  EXPECT_EQ(s.smallest.dims[1], 3);
  EXPECT_EQ(s.smallest.dims[2], 0);
}

TEST(Shrink, FindsASmallCaseThatNoChainOfFailingStepsLeadsTo) {
  const Shrunk s = shrunk([](const Case& c) { return c.dims[0] >= 20 || c.dims == std::vector<Index>{3, 3, 3}; });
  EXPECT_EQ(s.smallest.dims, (std::vector<Index>{3, 3, 3}));
}

TEST(Shrink, KeepsTheLayoutThatTheFailureNeeds) {
  const Shrunk s = shrunk([](const Case& c) { return c.layout == Layout::padded && c.dims[0] > 0; });
  EXPECT_EQ(s.smallest.layout, Layout::padded);
  EXPECT_EQ(s.smallest.dims, (std::vector<Index>{1, 0, 0}));
}

TEST(Shrink, ValuesGoTowardZeroAndOne) {
  const auto sum = [](const Case& c) {
    float total = 0;
    for (const auto& list : c.values)
      for (float x : list) total += std::fabs(x);
    return total;
  };
  const Shrunk s = shrunk([&](const Case& c) {
    return c.dims[0] >= 2 && c.dims[1] >= 2 && c.dims[2] >= 1 && (c.values.empty() || sum(c) >= 1);
  });
  ASSERT_FALSE(s.smallest.values.empty());
  EXPECT_EQ(sum(s.smallest), 1);
}

TEST(Shrink, SaysWhereTimeRanOut) {
  const OpDescriptor& op = operation("matmul");
  const auto drawn = draw(op, differential(), 3, 1);
  const Shrunk s = shrink(op, differential(), drawn, {}, [](const Case&) { return true; }, std::chrono::milliseconds(0));
  EXPECT_FALSE(s.complete);
}

}  // namespace
}  // namespace assay::falsify
