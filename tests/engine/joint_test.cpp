// Joint shapes: coverage by campaigns, cost, and the comparison of sampled places.
#include "falsify/engine/joint.hpp"

#include <gtest/gtest.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "core/errors.hpp"
#include "falsify/engine/campaign.hpp"
#include "falsify/engine/comparator.hpp"
#include "falsify/engine/draw.hpp"
#include "falsify/engine/inputs.hpp"
#include "falsify/engine/obligation.hpp"
#include "falsify/engine/oracle.hpp"
#include "falsify/engine/trial.hpp"

namespace assay::falsify::joint_test {
namespace {

constexpr std::uint64_t kCases = 100;

/// Returns the number of cases of each region in a default campaign, by obligation.
std::map<std::string_view, std::vector<int>> drawn_regions(const OpDescriptor& op, bool in_blocks) {
  std::map<std::string_view, std::vector<int>> drawn;
  for (const Obligation& o : obligations(op.name)) {
    std::vector<int>& of = drawn[o.info->id];
    of.resize(op.shapes.size());
    for (std::uint64_t n = 0; n < kCases; ++n) {
      if (n % static_cast<std::uint64_t>(draw_spec(o.info->by).every) != 0) continue;
      const Case c = draw(op, *o.info, 1, n, {.in_blocks = in_blocks}).value();
      if (c.region < 0) continue;
      ++of[static_cast<std::size_t>(c.region)];
      EXPECT_TRUE(valid(op, c.dims)) << describe(op, c);
      EXPECT_TRUE(is_joint(op, c.dims)) << describe(op, c);
      EXPECT_NE(describe(op, c).find(op.shapes[static_cast<std::size_t>(c.region)].name), std::string::npos);
    }
  }
  return drawn;
}

/// Limit in seconds on the cost of a shape (falsify/engine/draw.cpp).
constexpr double kMaxOfModels = 1.2;

/// Cost of the region's cheapest shape for kernels in blocks. Many rows of few elements cost a block each, and are for
/// kernels on the host.
double cheapest_in_blocks(const OpDescriptor& op, const ShapeRegion& region) {
  double cheapest = INFINITY;
  for (std::size_t s = 0; s < shapes_in(op, region); ++s) {
    Random random(1);
    const std::vector<Index> dims = joint_dims(op, shape_at(op, region, s), random);
    cheapest = std::min(cheapest, case_cost(op, dims, true, OracleUse::sample));
  }
  return cheapest;
}

/// The differential of a default campaign draws every listed region that it can afford; other obligations draw as many joint cases, of
/// affordable regions. The test logs the counts.
TEST(Joint, DefaultCampaignsContainEveryRegion) {
  for (const OpDescriptor* op : operations())
    for (const bool in_blocks : {false, true}) {
      ASSERT_FALSE(op->shapes.empty()) << op->name;
      std::string log;
      for (const auto& [id, counts] : drawn_regions(*op, in_blocks)) {
        log += fmt::format("{}: {}\n", id, fmt::join(counts, " "));
        const auto& info = *std::ranges::find(op->obligations, id, &ObligationInfo::id);
        const DrawSpec spec = draw_spec(info.by);
        const int all = std::reduce(counts.begin(), counts.end());
        const int usual = in_blocks || spec.every_region ? 12 : 6;
        const int least = spec.large ? 2 : spec.every_region && has_heads(*op) ? 25 : usual;
        EXPECT_GE(all, least) << op->name << '\n' << log;
        EXPECT_LE(all, least + 1) << op->name << '\n' << log;
        if (!spec.every_region) continue;
        for (std::size_t r = 0; r < counts.size(); ++r) {
          const bool affordable = !in_blocks || cheapest_in_blocks(*op, op->shapes[r]) <= kMaxOfModels;
          EXPECT_GE(counts[r], affordable ? 1 : 0) << id << " draws too little of " << op->shapes[r].name << '\n'
                                                   << log;
        }
      }
    }
}

/// A dim of 0 or 1 is a choice, such as with or without a bias: shapes of every kind come with both.
TEST(Joint, ShapesComeWithEachChoice) {
  for (const OpDescriptor* op : operations())
    for (std::size_t d = 0; d < op->dims.size(); ++d) {
      if (op->dims[d].max != 1) continue;
      std::set<Index> seen[3];
      for (const Obligation& o : obligations(op->name))
        for (std::uint64_t n = 0; n < 100; ++n) {
          const Case c = draw(*op, *o.info, 1, n).value();
          const bool far = std::ranges::any_of(c.dims, [](Index extent) { return extent > 1025; });
          seen[c.region >= 0 ? 0 : far ? 1 : 2].insert(c.dims[d]);
        }
      for (const auto& values : seen) EXPECT_EQ(values, (std::set<Index>{0, 1})) << op->name << ' ' << op->dims[d].name;
    }
}

/// Some obligation of a long campaign can afford each shape that a contract lists.
TEST(Joint, EveryShapeIsAffordableSomewhere) {
  for (const OpDescriptor* op : operations()) {
    std::set<std::vector<Index>> drawn;
    for (const ShapeRegion& region : op->shapes)
      for (std::size_t s = 0; s < shapes_in(*op, region); ++s) {
        Random random(1);
        const std::vector<Index> dims = joint_dims(*op, shape_at(*op, region, s), random);
        const double cost = case_cost(*op, dims, false, OracleUse::sample);
        EXPECT_LE(cost, kMaxOfModels) << op->name << ' ' << region.name << ' '
                                      << fmt::format("{}", fmt::join(dims, ","));
      }
  }
}

/// Joint rounds leave other cases unchanged. A region beyond 2^20 along the only dim stays: seldom extents give way to it.
TEST(Joint, TurnsLeaveOtherCasesAlone) {
  for (const OpDescriptor* op : operations()) {
    std::vector<ShapeRegion> kept;
    for (const ShapeRegion& region : op->shapes)
      if (op->dims.size() == 1 && shape_at(*op, region, 0)[0] > 1 << 20) kept.push_back(region);
    OpDescriptor without = *op;
    without.shapes = kept;
    int joint = 0, all = 0;
    for (const Obligation& o : obligations(op->name))
      for (std::uint64_t n = 0; n < 64; ++n) {
        const Case with = draw(*op, *o.info, 3, n).value(), plain = draw(without, *o.info, 3, n).value();
        ++all;
        if (with.region >= 0) ++joint;
        else EXPECT_EQ(with, plain) << describe(*op, with);
      }
    EXPECT_GE(joint * 16, all) << op->name;
  }
}

/// Of every two dims, one is long while the other is large, both ways, once in as many campaigns as there are dims, or
/// two, under a check with an oracle. Batches and heads are independent and need not be large; for attention, where
/// every score costs a sum, and where five dims multiply, more than a tile of 128 counts as long.
TEST(Joint, SeveralDimsAreLargeAtOnce) {
  for (const OpDescriptor* op : operations()) {
    const auto alone = [&](std::size_t d) {
      const auto counts = [&](const DimInfo& other) { return other.multiple_of == static_cast<int>(d); };
      return has_heads(*op) &&
             (op->dims[d].independent || op->dims[d].multiple_of >= 0 || std::ranges::any_of(op->dims, counts));
    };
    // Each pair of dims has its turn.
    const std::uint64_t campaigns = has_heads(*op) ? 2 : std::max<std::size_t>(op->dims.size(), 2);
    std::vector<Case> cases;
    for (const Obligation& o : obligations(op->name))
      for (std::uint64_t n = 0; n < campaigns * kCases; ++n)
        if (draw_spec(o.info->by).oracle_use == OracleUse::sample)
          cases.push_back(draw(*op, *o.info, 1 + n % campaigns, n / campaigns).value());
    const Index many = 24, long_dim = has_heads(*op) || op->dims.size() > 4 ? 129 : 1024;
    for (std::size_t one = 0; one < op->dims.size(); ++one)
      for (std::size_t other = 0; other < op->dims.size(); ++other) {
        if (one == other || op->dims[one].max < 2048 || op->dims[other].max < 64 || alone(one) || alone(other))
          continue;
        const auto large = [&](const Case& c) { return c.dims[one] >= long_dim && c.dims[other] >= many; };
        EXPECT_GE(std::ranges::count_if(cases, large), 1)
            << op->name << ": " << op->dims[one].name << " long and many " << op->dims[other].name;
      }
    for (const Case& c : cases) EXPECT_LE(oracle_cost(*op, c.dims), 25) << describe(*op, c);
  }
}

/// Default campaigns of copies have few long lines both ways: more than 2^20 elements in all, more than 2^16 in each.
TEST(Joint, FewLongLinesAreDrawnBothWays) {
  for (const char* name : {"transpose", "tensor_layout"}) {
    const OpDescriptor& op = operation(name);
    for (std::size_t line = 0; line < 2; ++line) {
      int drawn = 0;
      for (std::uint64_t seed = 1; seed <= 4; ++seed)
        for (const Obligation& o : obligations(name))
          for (std::uint64_t n = 0; n < kCases; ++n) {
            const std::vector<Index> dims = draw(op, *o.info, seed, n).value().dims;
            drawn += dims[line] > 65536 && dims[0] * dims[1] > 1 << 20 && dims[1 - line] < 64;
          }
      EXPECT_GE(drawn, 4) << name << ": " << op.dims[line].name;
    }
  }
}

/// In rounds of extents a dim takes any value up to its maximum, also beyond 15 and 16 bits. For kernels that run in
/// blocks, at most one case in a hundred has more than 16384 blocks.
TEST(Joint, ExtentsReachAnythingAndSeldomManyBlocks) {
  for (const OpDescriptor* op : operations())
    for (const bool in_blocks : {false, true}) {
      constexpr std::uint64_t kDraws = 12'000;  // per operation, split among its obligations
      std::vector<Index> furthest(op->dims.size());
      std::set<Index> residues;
      int many = 0, all = 0, powers = 0;
      for (std::size_t which = 0; which < op->obligations.size(); ++which) {
        const ObligationInfo& info = op->obligations[which];
        for (std::uint64_t n = 0; n < kDraws / op->obligations.size(); ++n, ++all) {
          if (draw_spec(info.by).large || (n + 5 * which) % 16 != 10) continue;
          const Case c = draw(*op, info, 5, n, {.in_blocks = in_blocks}).value();
          many += blocks_of(*op, c.dims) > 16384;
          for (std::size_t d = 0; d < c.dims.size(); ++d) {
            furthest[d] = std::max(furthest[d], c.dims[d]);
            if (c.dims[d] > 130)
              residues.insert(c.dims[d] % 64), powers += c.dims[d] > 500 && (c.dims[d] & (c.dims[d] - 1)) == 0;
          }
        }
      }
      EXPECT_LE(many * 100, in_blocks ? all : 5 * all) << op->name;
      for (std::size_t d = 0; d < op->dims.size() && !in_blocks; ++d) {
        std::vector<Index> alone(op->dims.size(), 1);
        alone[d] = 40'000;
        make_valid(*op, alone);
        // Rows of packed blocks are too expensive.
        const bool affordable = case_cost(*op, alone, false, OracleUse::whole) < 0.15;
        EXPECT_TRUE(op->dims[d].max < 140'000 || !affordable || furthest[d] > 32'768)
            << op->name << " never goes beyond 15 bits along " << op->dims[d].name << ": " << furthest[d];
      }
      if (std::ranges::none_of(op->dims, [](const DimInfo& dim) { return dim.max > 1000; })) continue;
      EXPECT_GT(residues.size(), 40U) << op->name;
      EXPECT_GT(powers, 0) << op->name;
    }
}

/// Checks the promise of `independent: true` for each operation: the oracle of some places agrees with the oracle of
/// all places there, and outputs without the dim are unchanged.
TEST(Joint, IndependentDimsAreIndependent) {
  int dims = 0;
  for (const OpDescriptor* op : operations())
    for (std::size_t d = 0; d < op->dims.size(); ++d) {
      if (!op->dims[d].independent) continue;
      ++dims;
      Case c;
      for (const DimInfo& dim : op->dims)
        c.dims.push_back(std::clamp<Index>(&dim == &op->dims[d] ? 12 : 5 * dim.multiple, dim.min, dim.max));
      make_valid(*op, c.dims);
      for (const ParamInfo& param : op->params)
        c.params.push_back(param.choices.empty() ? param.typical : param.choices.back());
      const Places sample{d, {0, 3, 4, 11}};
      const Problem whole = make_problem(*op, c, {});
      std::vector<std::vector<double>> all, part;
      const auto run = [&](const std::vector<Index>& extents, std::vector<std::vector<double>>& values) {
        std::vector<View<double>> views;
        for (std::size_t t = 0; t < values.size(); ++t) {
          const Shape shape = op->tensors[t].shape(extents);
          values[t].resize(static_cast<std::size_t>(shape.size()));
          views.emplace_back(values[t].data(), shape);
        }
        oracle(op->name).exact(views, c.params);
      };
      std::vector<Index> fewer = c.dims;
      fewer[d] = 4;
      for (std::size_t t = 0; t < op->tensors.size(); ++t) {
        all.push_back(widened(whole.values[t]));
        std::vector<double>& own = part.emplace_back();
        if (!all[t].empty())
          for (const std::size_t at : sampled_positions(op->tensors[t], c.dims, sample)) own.push_back(all[t][at]);
      }
      run(c.dims, all);
      run(fewer, part);
      for (const int t : outputs_of(*op)) {
        const auto positions = sampled_positions(op->tensors[static_cast<std::size_t>(t)], c.dims, sample);
        ASSERT_EQ(positions.size(), part[static_cast<std::size_t>(t)].size());
        for (std::size_t i = 0; i < positions.size(); ++i)
          ASSERT_EQ(part[static_cast<std::size_t>(t)][i], all[static_cast<std::size_t>(t)][positions[i]])
              << op->name << ' ' << op->dims[d].name;
      }
    }
  EXPECT_GT(dims, 15);
}

TEST(Joint, SamplesAreTakenOfLargeOraclesAndHaveTileCorners) {
  const OpDescriptor& op = operation("matmul");
  EXPECT_FALSE(sample_of(op, std::vector<Index>{90, 90, 90}, Random(1)));
  int corners = 0, all = 0;
  std::set<std::size_t> dims;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const std::vector<Index> extents{384, 384, 384};
    const auto sample = sample_of(op, extents, Random(seed));
    ASSERT_TRUE(sample);
    dims.insert(sample->dim);
    EXPECT_TRUE(op.dims[sample->dim].independent);
    EXPECT_EQ(sample->at.front(), 0);
    EXPECT_EQ(sample->at.back(), 383);
    EXPECT_GE(sample->at.size(), 4U);
    std::vector<Index> part = extents;
    part[sample->dim] = static_cast<Index>(sample->at.size());
    EXPECT_LE(oracle_cost(op, part), kAffordable);
    for (const Index place : sample->at) ++all, corners += place % 16 == 0 || place % 16 == 15;
  }
  EXPECT_EQ(dims.size(), 2U);
  EXPECT_GT(corners * 2, all);
}

/// A wrong element at a sampled place is found, one at another place is ignored, and neither is counted twice.
TEST(Joint, ComparisonsPassOverWhatWasNotJudged) {
  const std::vector<Bounded> want{Bounded(1, 0, 0, false), Bounded(2, 0, 0, false)};
  const std::vector<std::size_t> places{0, 2};
  for (const Tier tier : {Tier::exact, Tier::bits, Tier::worst_case, Tier::statistical}) {
    const std::vector<float> right{1, 7, 2, NAN}, wrong{1, 7, 3, NAN};
    const Outcome passed = compare(tier, "y", Shape{4}, right, want, DType::f32, places),
                  failed = compare(tier, "y", Shape{4}, wrong, want, DType::f32, places);
    EXPECT_EQ(passed.kind, Outcome::Kind::passed);
    EXPECT_EQ(passed.elements, 2);
    EXPECT_EQ(passed.nonzero, 2);
    ASSERT_EQ(failed.kind, Outcome::Kind::falsified);
    EXPECT_EQ(failed.finding->index, Shape{2});
  }
}

/// Runs cover the beginning, the end and the middle, with all lengths up to 256. In a row of several tiles a whole
/// first or last tile is often masked.
TEST(Joint, RunsCoverWholeTiles) {
  int first = 0, last = 0, inside = 0;
  std::set<Index> lengths;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    Random random(seed);
    const Runs runs(400, random);
    Index counted = 0;
    for (Index j = 0; j < 400; ++j) counted += runs.counts(j);
    lengths.insert(std::min(counted, 400 - counted));
    const auto none = [&](Index from, Index to) {
      for (Index j = from; j < to; ++j)
        if (runs.counts(j)) return false;
      return true;
    };
    first += none(0, 64), last += none(336, 400), inside += none(128, 192) && runs.counts(0) && runs.counts(399);
  }
  EXPECT_EQ(*lengths.begin(), 1);
  EXPECT_GT(lengths.size(), 60U);
  EXPECT_GT(first, 50);
  EXPECT_GT(last, 50);
  EXPECT_GT(inside, 10);
}

/// Joint shapes of softmax contain whole tiles of -inf, and whole tiles with negligible weights.
TEST(Joint, RunsReachTheInputsOfJointShapes) {
  for (const char* name : {"softmax", "cross_entropy", "attention", "attention_decode"}) {
    const OpDescriptor& op = operation(name);
    int runs = 0, infinite = 0;
    for (const Obligation& o : obligations(name))
      for (std::uint64_t n = 0; n < 400; ++n) {
        const Case c = draw(op, *o.info, 1, n).value();
        if (c.region < 0 || c.strategy != Strategy::runs) continue;
        ++runs;
        if (runs > 12) continue;
        const Problem problem = make_problem(op, c, {});
        for (const std::vector<float>& values : problem.values) infinite += std::ranges::count(values, -INFINITY) > 8;
      }
    EXPECT_GT(runs, 20) << name;
    EXPECT_GT(infinite, 1) << name;
  }
}

TEST(Joint, OneShapeAskedForIsThatOfEveryCase) {
  const OpDescriptor& op = operation("attention");
  const std::vector<Index> asked = dims_from_text(op, "s=128,t=128,d=64", "--dims");
  EXPECT_EQ(asked, (std::vector<Index>{kDrawnSmall, 128, 128, kDrawnSmall, kDrawnSmall, 64}));
  for (std::uint64_t n = 0; n < 40; ++n) {
    const Case c = draw(op, op.obligations[1], 1, n, {.dims = asked}).value();
    EXPECT_EQ(c.dims[1], 128);
    EXPECT_EQ(c.dims[2], 128);
    EXPECT_EQ(c.dims[5], 64);
    EXPECT_LE(c.dims[0], 3);
    EXPECT_TRUE(valid(op, c.dims));
  }
  for (const char* wrong : {"x=1", "s", "s=", "s=-1", "d=257", "s=1,s=1", "heads=4", "kv_heads=3,heads=4", "", "s=1,"})
    EXPECT_THROW(dims_from_text(op, wrong, "--dims"), InputError) << wrong;
}

}  // namespace
}  // namespace assay::falsify::joint_test
