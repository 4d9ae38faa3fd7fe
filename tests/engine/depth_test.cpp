// Verdicts have a floor: the least coverage of a campaign, and the most that a kernel may refuse.
#include "falsify/engine/depth.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <thread>

#include "falsify/engine/admit.hpp"
#include "falsify/engine/campaign.hpp"
#include "falsify/engine/draw.hpp"
#include "falsify/engine/report.hpp"
#include "falsify/engine/reports/formats.hpp"
#include "runtime/limits.hpp"

namespace assay::falsify::depth_test {
namespace {

std::vector<const Obligation*> all_of(std::string_view op) {
  std::vector<const Obligation*> list;
  for (const Obligation& o : obligations(op)) list.push_back(&o);
  return list;
}

/// Returns the coverage of the cases before round `rounds` for which `keep` returns true.
template <class Keep>
std::vector<Coverage> covered(std::string_view op, int rounds, Keep keep) {
  std::vector<Coverage> list;
  for (const Obligation* o : all_of(op)) {
    Coverage& c = list.emplace_back();
    for (int number = 0; number < rounds; number += draw_spec(o->info->by).every)
      if (const Case drawn = draw(operation(op), *o->info, 1, static_cast<std::uint64_t>(number)).value();
          keep(*o, drawn))
        c.add(operation(op), drawn);
  }
  return list;
}
std::vector<Coverage> covered(std::string_view op, int rounds) {
  return covered(op, rounds, [](const Obligation&, const Case&) { return true; });
}

/// For every operation and seed, the default campaign reaches the floor set by its own draws, and a tenth of it does
/// not.
TEST(Floor, IsReachedByTheDefaultCampaignOfEveryOperation) {
  for (const OpDescriptor* op : operations()) {
    const std::vector<const Obligation*> list = all_of(op->name);
    const std::vector<bool> counts(list.size(), true);
    const Floor floor(*op, list, 1);
    EXPECT_EQ(floor.lacks(covered(op->name, kDefaultCases), counts), "") << op->name;
    EXPECT_NE(floor.lacks(covered(op->name, 5), counts), "") << op->name;
    EXPECT_DOUBLE_EQ(floor.depth(covered(op->name, kDefaultCases), counts), 1) << op->name;
  }
}

TEST(Floor, AsksForNothingThatTheKernelsLimitsExclude) {
  Limits limits;
  limits.refuse = [](std::span<const Index> dims, std::span<const double>) {
    return std::ranges::max(dims) > 32 ? std::optional<std::string>("an extent above 32") : std::nullopt;
  };
  limits.repair = [](std::vector<Index>& dims, std::vector<double>&, std::uint64_t) {
    for (Index& dim : dims) dim = std::min<Index>(dim, 32);
    return true;
  };
  Kernel kernel;
  kernel.limits = &limits;
  const OpDescriptor& op = operation("matmul");
  const std::vector<const Obligation*> list = all_of("matmul");
  const std::vector<bool> counts(list.size(), true);
  std::vector<Coverage> taken;
  for (const Obligation* o : list) {
    Coverage& c = taken.emplace_back();
    for (int number = 0; number < kDefaultCases; number += draw_spec(o->info->by).every)
      c.add(op, admitted(op, kernel, draw(op, *o->info, 1, static_cast<std::uint64_t>(number)).value()));
    EXPECT_EQ(c.regions, 0u) << o->info->id;
  }
  EXPECT_EQ(Floor(op, list, 1, {}, &kernel).lacks(taken, counts), "");
  EXPECT_NE(Floor(op, list, 1).lacks(taken, counts), "");
}

TEST(Floor, NamesTheStrategyAndThePlacementThatAreMissing) {
  const std::vector<const Obligation*> list = all_of("matmul");
  const std::vector<bool> counts(list.size(), true);
  const Floor floor(operation("matmul"), list, 1);
  const auto without = [&](auto drop) {
    return floor.lacks(
        covered("matmul", kDefaultCases,
                [&](const Obligation& o, const Case& c) { return o.info->by != "differential" || !drop(c); }),
        counts);
  };
  EXPECT_EQ(without([](const Case& c) { return c.strategy == Strategy::dominant; }),
            "FALSIFY-MM-002 had no case of dominant");
  EXPECT_EQ(without([](const Case& c) { return c.placement == Placement::page_start; }),
            "FALSIFY-MM-002 had no case with page_start");
}

TEST(Floor, AsksForAThirdOfTheElements) {
  const std::vector<const Obligation*> list = all_of("matmul");
  const std::vector<bool> counts(list.size(), true);
  const Floor floor(operation("matmul"), list, 1);
  std::vector<Coverage> all = covered("matmul", kDefaultCases);
  for (Coverage& c : all) c.elements *= 0.34;
  EXPECT_EQ(floor.lacks(all, counts), "");
  for (Coverage& c : all) c.elements *= 0.95;
  EXPECT_EQ(
      floor.lacks(all, counts),
      "32.3% of the elements of a default campaign, of which at least a third is required: give --cases 100, the default, or more");
}

/// Slow cases do not count towards elements that are missing: the fast ones suffice.
TEST(Floor, ItsElementsComeFromTheCasesThatCompareMostASecond) {
  for (const OpDescriptor* op : operations()) {
    const std::vector<const Obligation*> list = all_of(op->name);
    const std::vector<bool> counts(list.size(), true);
    const Floor floor(*op, list, 1);
    std::vector<Coverage> none = covered(op->name, kDefaultCases);
    for (Coverage& c : none) c.elements = 0;
    std::vector<Coverage> rich = none;
    int taken = 0, cases = 0;
    for (std::size_t o = 0; o < list.size(); ++o)
      for (int number = 0; number < kDefaultCases; number += draw_spec(list[o]->info->by).every, ++cases)
        if (const Case drawn = draw(*op, *list[o]->info, 1, static_cast<std::uint64_t>(number)).value();
            floor.adds(o, drawn, none, counts))
          rich[o].add(*op, drawn), ++taken;
    EXPECT_EQ(floor.lacks(rich, counts), "") << op->name;
    EXPECT_LT(taken, cases) << op->name;
  }
}

/// Each region is drawn under two obligations, at least one with an oracle or a certificate.
TEST(Floor, AsksForJointShapesUnderTwoObligations) {
  const std::vector<const Obligation*> list = all_of("matmul");
  const std::vector<bool> counts(list.size(), true);
  const Floor floor(operation("matmul"), list, 1);
  std::vector<Coverage> all = covered("matmul", kDefaultCases);
  const std::uint64_t regions = std::ranges::max(all, {}, &Coverage::regions).regions;
  if (regions == 0) GTEST_SKIP() << "matmul draws no joint shapes";
  for (Coverage& c : all) c.regions = 0;
  EXPECT_NE(floor.lacks(all, counts).find("0 of 2 obligations had a case of the shapes"), std::string::npos)
      << floor.lacks(all, counts);
  const auto give = [&](std::string_view by) {
    for (std::size_t o = 0; o < list.size(); ++o)
      if (list[o]->info->by == by) all[o].regions = ~std::uint64_t{0};
  };
  give("linearity");
  EXPECT_NE(floor.lacks(all, counts).find("1 of 2 obligations"), std::string::npos);
  give("transposition");
  EXPECT_NE(floor.lacks(all, counts).find("no obligation with an oracle"), std::string::npos);
  give("differential");
  EXPECT_EQ(floor.lacks(all, counts), "");
}

KernelResult campaign(const Kernel& k, CampaignOptions options = {}) {
  return run_campaign(operation(k.op), k, options);
}
std::string status(const KernelResult& result) { return to_json(operation(result.kernel->op), result)["status"]; }

TEST(Depth, ACampaignBelowItsFloorIsThin) {
  CampaignOptions options;
  options.cases = 5;
  const KernelResult result = campaign(kernel("transpose/cpu/naive"), options);
  EXPECT_EQ(status(result), "thin");
  EXPECT_TRUE(result.clean());
  EXPECT_LT(result.depth, 0.34);
  const auto report = make_report({to_json(operation("transpose"), result)}, nlohmann::json::object(), 1);
  EXPECT_EQ(report["exit_code"], 4);
  EXPECT_EQ(report["totals"]["thin"], 1);
  EXPECT_EQ(report["totals"]["passed"], 0);
  EXPECT_NE(table(report).find("thin: "), std::string::npos) << table(report);
  EXPECT_NE(table(report).find("% of the default depth: "), std::string::npos) << table(report);
  EXPECT_NE(junit_xml(report).find("<failure type=\"thin\""), std::string::npos);
  EXPECT_NE(annotations(report).find("::warning"), std::string::npos);
  EXPECT_NE(sarif(report).find("was tried too little (thin)"), std::string::npos);
  EXPECT_NE(step_summary(report).find("**Thin:**"), std::string::npos);
}

TEST(Depth, TheDefaultCampaignPasses) {
  const KernelResult result = campaign(kernel("transpose/cpu/naive"));
  EXPECT_EQ(status(result), "passed");
  EXPECT_EQ(result.depth, 1);
}

TEST(Depth, ATimeEndsACampaignBelowItsFloorWhereItMay) {
  CampaignOptions options;
  options.time = std::chrono::milliseconds(1);
  options.cases = 100'000;
  EXPECT_EQ(status(campaign(kernel("transpose/cpu/naive"), options)), "thin");
  options.to_floor = true;
  const KernelResult deep = campaign(kernel("transpose/cpu/naive"), options);
  EXPECT_EQ(status(deep), "passed") << deep.shortfall.reason;
  EXPECT_GT(deep.floor_seconds, 0);
  for (const ObligationResult& o : deep.obligations) EXPECT_LT(o.cases, kDefaultCases) << "it went on beyond its floor";
}

/// A falsified kernel need not reach the floor.
TEST(Depth, AFalsifiedKernelHasNoFloor) {
  CampaignOptions options;
  options.time = std::chrono::milliseconds(50);
  options.to_floor = true;
  options.cases = 100'000;
  Kernel k = kernel("transpose/cpu/naive");
  k.run = [](const Call&, Device&) {};
  const KernelResult result = campaign(k, options);
  EXPECT_EQ(status(result), "falsified");
  EXPECT_LT(result.seconds, 20);
}

Kernel refusing(bool (*refused)(const Call&)) {
  Kernel k = kernel("transpose/cpu/naive");
  k.refuse = [refused](const Call& call) -> std::optional<std::string> {
    if (refused(call)) return "not such a call";
    return std::nullopt;
  };
  return k;
}

TEST(Depth, AKernelThatRefusesMostOfItsCasesIsRefused) {
  const KernelResult result = campaign(refusing([](const Call& call) { return call.dims[0] * call.dims[1] > 100; }));
  EXPECT_EQ(status(result), "refused") << result.shortfall.reason;
  const auto report = make_report({to_json(operation("transpose"), result)}, nlohmann::json::object(), 1);
  EXPECT_EQ(report["totals"]["refused"], 1);
  EXPECT_NE(table(report).find("refused: "), std::string::npos) << table(report);
}

TEST(Depth, AKernelThatRefusesSomeOfItsCasesPasses) {
  const KernelResult result = campaign(refusing([](const Call& call) { return call.dims[0] % 5 == 1; }));
  EXPECT_EQ(status(result), "passed") << result.shortfall.reason;
  int refused = 0;
  for (const ObligationResult& o : result.obligations) refused += o.refused;
  EXPECT_GT(refused, 10);
}

/// A campaign too short to draw each strategy and placement once is thin: it cannot claim that a kernel refuses too
/// much.
TEST(Depth, RefusalsOfAShortCampaignAreThin) {
  static Index largest;
  Kernel k = kernel("matmul/cpu/naive");
  k.refuse = [](const Call& call) {
    return call.dims[0] > largest ? std::optional<std::string>("not such a call") : std::nullopt;
  };
  const Obligation& differential =
      *std::ranges::find_if(obligations("matmul"), [](const Obligation& o) { return o.info->by == "differential"; });
  const Obligation* const only[] = {&differential};
  const int least = Floor(operation("matmul"), only, 1).least_cases(0);
  CampaignOptions options;
  options.only = std::string(differential.info->id);
  int early = 0, late = 0;
  for (options.seed = 1; options.seed <= 2; ++options.seed)
    for (largest = 4; largest <= 64; largest *= 4)
      for (options.cases = 2; options.cases < 2 * least; ++options.cases) {
        const KernelResult result = campaign(k, options);
        const ObligationResult& o = result.obligations[0];
        const int left = o.cases - o.refused;
        // Skip kernels with other verdicts: all cases refused, enough cases left, or only zeros left.
        if (left == 0 || left >= std::min(least, (o.cases + 2) / 3) || o.verdict == Verdict::mistrusted) continue;
        ++(o.cases < least ? early : late);
        EXPECT_EQ(o.verdict, o.cases < least ? Verdict::passed : Verdict::refused)
            << o.cases << " of at least " << least << ": " << o.reason;
        EXPECT_EQ(status(result), o.cases < least ? "thin" : "refused") << result.shortfall.reason;
      }
  EXPECT_GT(early, 0);
  EXPECT_GT(late, 0);
}

/// Below the default campaign, a third of the elements must be compared, not only tried.
TEST(Depth, ElementsThatAreRefusedAreMadeUpFor) {
  CampaignOptions options;
  options.time = std::chrono::milliseconds(1);
  options.to_floor = true;
  options.cases = 100'000;
  const KernelResult result = campaign(refusing([](const Call& call) { return call.dims[0] % 2 == 1; }), options);
  EXPECT_EQ(status(result), "passed") << result.shortfall.reason;
}

/// A doubled rank is outside a shim with one rank, and a few other calls are refused: the relation does not apply.
TEST(Depth, ARelationThatHardlyAppliesIsNotRefused) {
  Limits limits;
  limits.refuse = [](std::span<const Index> dims, std::span<const double>) {
    return dims[3] == 16 ? std::nullopt : std::optional<std::string>("it requires r == 16");
  };
  limits.repair = [](std::vector<Index>& dims, std::vector<double>&, std::uint64_t) { return dims[3] = 16, true; };
  Kernel k = kernel("lora_linear/cpu/naive");
  k.limits = &limits;
  k.refuse = [](const Call& call) {
    return call.dims[0] % 5 == 1 ? std::optional<std::string>("not such a call") : std::nullopt;
  };
  const auto& all = obligations("lora_linear");
  CampaignOptions options;
  options.only = std::string(
      std::ranges::find_if(all, [](const Obligation& o) { return o.info->by == "rank_doubled"; })->info->id);
  const ObligationResult o = campaign(k, options).obligations[0];
  EXPECT_GT(o.refused, 0);
  EXPECT_EQ(o.verdict, Verdict::not_applicable) << o.reason;
  EXPECT_NE(o.reason.find("r == 16"), std::string::npos) << o.reason;
}

TEST(Depth, AnObligationThatIsLeftTooFewCasesIsRefused) {
  const Kernel k = refusing([](const Call& call) { return call.dims[0] > 2; });
  CampaignOptions options;
  options.cases = 12;
  options.only = std::string(operation("transpose").obligations[0].id);
  const KernelResult result = campaign(k, options);
  EXPECT_EQ(result.obligations[0].verdict, Verdict::refused);
  EXPECT_NE(result.obligations[0].reason.find(" cases refused, of which "), std::string::npos)
      << result.obligations[0].reason;
}

}  // namespace
}  // namespace assay::falsify::depth_test
