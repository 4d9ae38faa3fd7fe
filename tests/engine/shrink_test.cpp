// The shrinker on failures with a known smallest case.
#include "falsify/engine/shrink.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/seq/Create.h>
#include <rapidcheck/shrinkable/Create.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

#include "falsify/engine/draw.hpp"

namespace assay::falsify::shrink_test {
namespace {

const ObligationInfo& differential() {
  const OpDescriptor& op = operation("matmul");
  return *std::ranges::find(op.obligations, "differential", &ObligationInfo::by);
}

/// Returns the first drawn case that fails, shrunk.
Shrunk shrunk(const Fails& fails) {
  const OpDescriptor& op = operation("matmul");
  for (std::uint64_t n = 0;; ++n) {
    const auto drawn = draw(op, differential(), 3, n);
    if (fails(drawn.value())) return shrink(op, differential(), drawn, Kernel{}, fails, std::chrono::seconds(20));
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
  // Odd products: halving or decrementing one dim at a time makes the product even.
  const Shrunk s =
      shrunk([](const Case& c) { return c.dims[0] * c.dims[1] % 2 == 1 && c.dims[0] != 1 && c.dims[1] != 1; });
  EXPECT_EQ(s.smallest.dims[0], 3);
  EXPECT_EQ(s.smallest.dims[1], 3);
  EXPECT_EQ(s.smallest.dims[2], 0);
}

bool all_from_four(const Case& c) { return c.dims[0] >= 4 && c.dims[1] >= 4 && c.dims[2] >= 4; }

TEST(Shrink, FindsASmallCaseThatNoChainOfFailingStepsLeadsTo) {
  const Shrunk s = shrunk([](const Case& c) { return all_from_four(c) || c.dims == std::vector<Index>{3, 3, 3}; });
  EXPECT_EQ(s.smallest.dims, (std::vector<Index>{3, 3, 3}));
  EXPECT_EQ(s.smallest.layout, Layout::tight);
  EXPECT_EQ(s.smallest.placement, Placement::sentinels);
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
  const Shrunk s = shrink(
      op, differential(), drawn, Kernel{}, [](const Case&) { return true; }, std::chrono::milliseconds(0));
  EXPECT_FALSE(s.complete);
}

/// The search of small dims tries every strategy, layout and placement, and a second seed.
TEST(Shrink, SmallCasesAreTriedInEveryWay) {
  const std::vector<Index> threes{3, 3, 3};
  const auto found = [&](auto needs) {
    return shrunk([&](const Case& c) { return all_from_four(c) || (c.dims == threes && needs(c)); }).smallest;
  };
  for (const Strategy strategy : draw_spec("differential").strategies) {
    const Case c = found([&](const Case& x) { return x.strategy == strategy; });
    EXPECT_EQ(c.dims, threes) << name(strategy);
    EXPECT_EQ(c.strategy, strategy);
  }
  for (int layout = 0; layout < kNearLayouts; ++layout) {
    const Case c = found([&](const Case& x) { return static_cast<int>(x.layout) == layout; });
    EXPECT_EQ(c.dims, threes) << layout;
    EXPECT_EQ(static_cast<int>(c.layout), layout);
  }
  for (int placement = 0; placement < kPlacements; ++placement) {
    const Case c = found([&](const Case& x) { return static_cast<int>(x.placement) == placement; });
    EXPECT_EQ(c.dims, threes) << placement;
    EXPECT_EQ(static_cast<int>(c.placement), placement);
  }
  std::uint64_t drawn = 0;
  const Shrunk s = shrunk([&](const Case& c) {
    if (all_from_four(c)) drawn = c.seed;
    return all_from_four(c) || (c.dims == threes && c.seed != drawn);
  });
  EXPECT_EQ(s.smallest.dims, threes);
  EXPECT_NE(s.smallest.seed, drawn);
}

/// The search tries the original seed first, since a failure may need it.
TEST(Shrink, SmallCasesAreTriedWithTheSeedThatFailed) {
  std::uint64_t drawn = 0;
  const Shrunk s = shrunk([&](const Case& c) {
    if (drawn == 0 && all_from_four(c)) drawn = c.seed;
    return c.seed == drawn && (all_from_four(c) || c.dims == std::vector<Index>{3, 3, 3});
  });
  EXPECT_EQ(s.smallest.dims, (std::vector<Index>{3, 3, 3}));
}

TEST(Shrink, TheSearchGoesUpToFourTheSmallestSumFirst) {
  const auto found = [](const std::vector<std::vector<Index>>& failing) {
    return shrunk(
               [&](const Case& c) { return all_from_four(c) || std::ranges::find(failing, c.dims) != failing.end(); })
        .smallest.dims;
  };
  EXPECT_EQ(found({{4, 0, 4}}), (std::vector<Index>{4, 0, 4}));
  EXPECT_EQ(found({{0, 0, 0}}), (std::vector<Index>{0, 0, 0}));
  EXPECT_EQ(found({{4, 0, 3}, {2, 2, 1}, {2, 1, 2}, {1, 2, 2}}), (std::vector<Index>{1, 2, 2}));
}

/// The search of small dims is skipped for a failure that needs a dim above 4: it would take longer than everything
/// else.
TEST(Shrink, TheSearchIsForCasesThatEndedSmall) {
  std::vector<Case> tried;
  const Shrunk s = shrunk([&](const Case& c) {
    tried.push_back(c);
    return c.dims[0] >= 5 || c.dims == std::vector<Index>{3, 3, 3};
  });
  EXPECT_EQ(s.smallest.dims, (std::vector<Index>{5, 0, 0}));
  EXPECT_TRUE(s.complete);
  EXPECT_LT(tried.size(), 1000U);
}

TEST(Shrink, TheSearchTakesASecondAtMost) {
  const auto begin = std::chrono::steady_clock::now();
  const Shrunk s = shrunk([](const Case& c) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    return all_from_four(c);
  });
  EXPECT_EQ(s.smallest.dims, (std::vector<Index>{4, 4, 4}));
  EXPECT_FALSE(s.smallest.values.empty()) << "values are made simpler all the same";
  EXPECT_FALSE(s.complete);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(8));
}

/// Given a known failure, the search tries only cases with smaller dims.
TEST(Shrink, TheSearchTriesOnlySmallerDims) {
  const OpDescriptor& op = operation("matmul");
  const auto sum = [](const Case& c) { return c.dims[0] + c.dims[1] + c.dims[2]; };
  Case first;
  first.dims = {1, 1, 1};
  std::vector<Case> tried;
  const Fails fails = [&](const Case& c) {
    tried.push_back(c);
    return c.values.empty() && c.dims[0] >= 1 && c.dims[1] >= 1 && c.dims[2] >= 1;
  };
  const Shrunk s = shrink(op, differential(), rc::shrinkable::just(first), Kernel{}, fails, std::chrono::seconds(20));
  EXPECT_EQ(s.smallest, first);
  EXPECT_FALSE(tried.empty());
  for (const Case& c : tried) {
    EXPECT_TRUE(sum(c) < 3 || c.dims == first.dims) << describe(op, c);
    EXPECT_TRUE(static_cast<int>(c.layout) >= 0 && static_cast<int>(c.layout) < kLayouts);
    EXPECT_TRUE(static_cast<int>(c.placement) >= 0 && static_cast<int>(c.placement) < kPlacements);
  }
}

/// Up to 64 values are written out, for every way of reaching the case.
TEST(Shrink, FewValuesAreMadeExplicit) {
  const auto smallest = [](const std::vector<Index>& least) {
    return shrunk([&](const Case& c) {
             for (std::size_t d = 0; d < 3; ++d)
               if (c.dims[d] < least[d]) return false;
             return true;
           })
        .smallest;
  };
  const Case sixty_four = smallest({1, 16, 3}), more = smallest({1, 13, 4}), none = smallest({3, 0, 2});
  EXPECT_EQ(sixty_four.dims, (std::vector<Index>{1, 16, 3}));
  ASSERT_EQ(sixty_four.values.size(), 3U);
  EXPECT_EQ(sixty_four.values[0], std::vector<float>(16, 0));
  EXPECT_EQ(sixty_four.values[1], std::vector<float>(48, 0));
  EXPECT_EQ(more.dims, (std::vector<Index>{1, 13, 4}));
  EXPECT_TRUE(more.values.empty());
  EXPECT_EQ(none.dims, (std::vector<Index>{3, 0, 2}));
  EXPECT_TRUE(none.values.empty());
}

TEST(Shrink, ValuesThatDoNotFailAloneAreNotTaken) {
  const Shrunk s = shrunk([](const Case& c) { return c.values.empty() && c.dims[0] > 0 && c.dims[1] > 0; });
  EXPECT_EQ(s.smallest.dims, (std::vector<Index>{1, 1, 0}));
  EXPECT_TRUE(s.smallest.values.empty());
}

/// Dims given by --dims stay fixed in the descent and in the search of small dims.
TEST(Shrink, DimsThatAreGivenStay) {
  const OpDescriptor& op = operation("matmul");
  for (const Index n : {64, 3}) {
    Case first;
    first.dims = {7, 9, n};
    DrawSpec spec = draw_spec("differential");
    const auto failing =
        rc::shrinkable::shrinkRecur(first, [&](const Case& x) { return rc::seq::fromContainer(simpler(op, spec, x)); });
    const std::vector<Index> given{kDrawnSmall, kDrawnSmall, n};
    const Shrunk s = shrink(
        op, differential(), failing, Kernel{}, [](const Case& c) { return c.dims[0] > 0 && c.dims[1] > 0; },
        std::chrono::seconds(20), given);
    EXPECT_EQ(s.smallest.dims, (std::vector<Index>{1, 1, n}));
    EXPECT_TRUE(s.complete);
  }
}

TEST(Shrink, EveryRunIsCounted) {
  const OpDescriptor& op = operation("matmul");
  const auto drawn = draw(op, differential(), 3, 1);
  int runs = 0;
  const Fails fails = [&](const Case& c) { return ++runs > 0 && c.dims[0] > 0; };
  const Shrunk s = shrink(op, differential(), drawn, Kernel{}, fails, std::chrono::seconds(20));
  EXPECT_EQ(s.tried, runs);
  EXPECT_GT(runs, 2);
  EXPECT_GT(s.seconds, 0);
  EXPECT_LT(s.seconds, 20);
  runs = 0;
  const Shrunk late = shrink(op, differential(), drawn, Kernel{}, fails, std::chrono::milliseconds(-1));
  EXPECT_EQ(runs, 0) << "no time, no run";
  EXPECT_EQ(late.tried, 0);
  EXPECT_EQ(late.smallest, drawn.value());
}

}  // namespace
}  // namespace assay::falsify::shrink_test
