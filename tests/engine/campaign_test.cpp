// A campaign ends in time, counts what it did, and passes only with evidence.
#include "falsify/engine/campaign.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <new>
#include <span>
#include <string>
#include <thread>

#include "falsify/engine/draw.hpp"
#include "runtime/limits.hpp"

namespace assay::falsify::campaign_test {
namespace {

TEST(Campaign, EndsInItsTime) {
  using Clock = std::chrono::steady_clock;
  CampaignOptions options;
  options.cases = 20'000;  // takes seconds unless the time limit holds
  options.time = std::chrono::milliseconds(300);
  options.largest = 8;
  std::optional<Clock::time_point> end;  // slightly after the campaign's own end
  std::int64_t late = 0, last = 0;
  const auto count = [&](const Kernel&, std::int64_t done, std::int64_t planned) {
    if (!end) end = Clock::now() + options.time;
    constexpr int kRoundsForEvidence = 20;  // these rounds run even after the time limit
    late += Clock::now() > *end && done > kRoundsForEvidence * (planned / options.cases);
    last = planned - done;
  };
  run_campaign(operation("transpose"), kernel("transpose/cpu/naive"), options, count);
  EXPECT_LE(late, 1);
  EXPECT_GT(last, 0);
}

TEST(Campaign, RunsAllItsCasesWhereTimeIsLeft) {
  CampaignOptions options;
  options.cases = 5;
  options.time = std::chrono::hours(1);
  options.largest = 8;
  std::int64_t left = -1;
  run_campaign(operation("transpose"), kernel("transpose/cpu/naive"), options,
               [&](const Kernel&, std::int64_t done, std::int64_t planned) { left = planned - done; });
  EXPECT_EQ(left, 0);
}

TEST(Campaign, ProgressCountsUpToWhatIsPlanned) {
  CampaignOptions options;
  options.cases = 5;
  options.largest = 8;
  std::int64_t last = 0, of = 0;
  const auto count = [&](const Kernel&, std::int64_t done, std::int64_t planned) {
    EXPECT_EQ(done, last + 1);
    last = done;
    of = planned;
  };
  run_campaign(operation("transpose"), kernel("transpose/cpu/naive"), options, count);
  EXPECT_GT(last, 0);
  EXPECT_EQ(last, of);
}

TEST(Campaign, AKernelThatRefusesEverythingHasNotPassed) {
  Kernel k = kernel("matmul/cpu/naive");
  k.refuse = [](const Call&) -> std::optional<std::string> { return "never"; };
  CampaignOptions options;
  options.cases = 3;
  const KernelResult result = run_campaign(operation("matmul"), k, options);
  EXPECT_FALSE(result.clean());
  for (const ObligationResult& o : result.obligations)
    EXPECT_TRUE(o.verdict == Verdict::refused || o.verdict == Verdict::not_applicable) << o.info->id;
}

/// Returns a seed for which one-hot factors leave most products zero in a few exact cases; 0 if no seed does.
std::uint64_t seed_of_mostly_zeros(CampaignOptions options) {
  for (options.seed = 1; options.seed < 500; ++options.seed) {
    const ObligationResult o =
        run_campaign(operation("matmul"), kernel("matmul/cpu/naive"), options).obligations.front();
    if (o.verdict == Verdict::mistrusted) return options.seed;
  }
  return 0;
}

TEST(Campaign, ComparisonsOfNothingOrOfZerosAreMistrusted) {
  CampaignOptions options;
  options.cases = 1;
  options.only = "FALSIFY-MM-003";
  options.seed = seed_of_mostly_zeros(options);
  ASSERT_NE(options.seed, 0) << "no seed drew a case of mostly zeros";
  const KernelResult result = run_campaign(operation("matmul"), kernel("matmul/cpu/naive"), options);
  EXPECT_EQ(result.obligations.front().verdict, Verdict::mistrusted);
}

/// A call fills few rows of a large table: a small share of all values, but enough to detect a kernel that writes
/// zeros.
TEST(Campaign, FewRowsOfALargeTableAreEvidence) {
  CampaignOptions options;
  options.cases = 10;
  options.dims = {3, 65537, kDrawnSmall};
  for (const ObligationResult& o :
       run_campaign(operation("embedding_backward"), kernel("embedding_backward/cpu/naive"), options).obligations) {
    EXPECT_NE(o.verdict, Verdict::mistrusted) << o.info->id << ": " << o.reason;
    if (o.info->by == "differential") {
      EXPECT_LT(o.nonzero * 1000, o.elements);
    }
  }
  Kernel zeros = kernel("embedding_backward/cpu/naive");
  zeros.run = [](const Call& call, Device&) {
    const View<float> table = call.tensors.back().as<float>();
    for (Index i = 0; i < table.dim(0); ++i)
      for (Index j = 0; j < table.dim(1); ++j) table(i, j) = 0;
  };
  options.shrink = false;
  EXPECT_TRUE(run_campaign(operation("embedding_backward"), zeros, options).falsified());
}

/// Zeros alone are no evidence in any number of calls.
TEST(Campaign, ZerosAloneAreNoEvidence) {
  CampaignOptions options;
  options.cases = 20;
  options.only = "FALSIFY-MM-002";
  options.dims = {kDrawnSmall, 0, 64};
  const ObligationResult o = run_campaign(operation("matmul"), kernel("matmul/cpu/naive"), options).obligations.front();
  EXPECT_GT(o.elements, 1000);
  EXPECT_EQ(o.verdict, Verdict::mistrusted);
}

TEST(Campaign, WhatHasNoMemoryIsUnavailable) {
  Kernel k = kernel("scale/cpu/naive");
  k.arithmetic.accumulator = Format::f32;
  Limits limits;
  limits.refuse = [](std::span<const Index>, std::span<const double>) -> std::optional<std::string> {
    throw std::bad_alloc();
  };
  k.limits = &limits;
  CampaignOptions options;
  options.cases = 2;
  options.shrink = false;
  const KernelResult result = run_campaign(operation("scale"), k, options);
  EXPECT_TRUE(result.unavailable());
  EXPECT_NE(result.obligations.front().reason.find("no memory to judge the case"), std::string::npos)
      << result.obligations.front().reason;
}

Kernel slowed(Kernel k, std::chrono::milliseconds each) {
  k.run = [run = k.run, each](const Call& call, Device& device) {
    std::this_thread::sleep_for(each);
    run(call, device);
  };
  return k;
}

TEST(Campaign, TimeEndsItOnlyWhenThereIsEvidence) {
  CampaignOptions options;
  options.cases = 1;
  options.only = "FALSIFY-MM-003";
  options.seed = seed_of_mostly_zeros(options);
  ASSERT_NE(options.seed, 0) << "no seed drew a case of mostly zeros";
  options.cases = 100'000;
  options.time = std::chrono::milliseconds(1);
  const KernelResult result =
      run_campaign(operation("matmul"), slowed(kernel("matmul/cpu/naive"), std::chrono::milliseconds(2)), options);
  const ObligationResult& o = result.obligations.front();
  EXPECT_EQ(o.verdict, Verdict::passed) << o.reason;
  EXPECT_GT(o.cases, 1);
  EXPECT_LE(o.cases, 20);
}

/// More cases give no more evidence on a kernel that refuses every case.
TEST(Campaign, WhatWasRefusedIsNotTriedOnWhenTheTimeIsUp) {
  Kernel k = kernel("matmul/cpu/naive");
  k.refuse = [](const Call&) -> std::optional<std::string> {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    return "never";
  };
  CampaignOptions options;
  options.cases = 100'000;
  options.time = std::chrono::milliseconds(1);
  for (const ObligationResult& o : run_campaign(operation("matmul"), k, options).obligations)
    EXPECT_LE(o.cases, 1) << o.info->id;
}

/// Once the time is up, only obligations that lack evidence are tried further.
TEST(Campaign, OnlyWhatLacksEvidenceIsTriedOnWhenTheTimeIsUp) {
  const OpDescriptor& op = operation("matmul");
  CampaignOptions options;
  options.cases = 1;
  options.only = "FALSIFY-MM-003";
  options.seed = seed_of_mostly_zeros(options);
  ASSERT_NE(options.seed, 0) << "no seed drew a case of mostly zeros";
  options.only.clear();
  const KernelResult once = run_campaign(op, kernel("matmul/cpu/naive"), options);
  options.cases = 100'000;
  options.time = std::chrono::milliseconds(1);
  const KernelResult result =
      run_campaign(op, slowed(kernel("matmul/cpu/naive"), std::chrono::milliseconds(2)), options);
  int lacking = 0;
  for (std::size_t o = 0; o < once.obligations.size(); ++o) {
    const bool lacks = once.obligations[o].verdict == Verdict::mistrusted;
    lacking += lacks;
    EXPECT_EQ(result.obligations[o].cases > once.obligations[o].cases, lacks) << once.obligations[o].info->id;
    EXPECT_EQ(result.obligations[o].verdict, lacks ? Verdict::passed : once.obligations[o].verdict)
        << once.obligations[o].info->id;
  }
  EXPECT_GT(lacking, 0);
  EXPECT_LT(lacking, static_cast<int>(once.obligations.size()) / 2);
}

TEST(Campaign, TakenUpItIsThatOfItsKernel) {
  const OpDescriptor& op = operation("transpose");
  const Kernel& naive = kernel("transpose/cpu/naive");
  CampaignOptions options;
  options.largest = 8;
  Checkpoint from{.rounds = 2, .after = 0, .total = 7, .hangs = 0, .so_far = {}, .ratios = {}};
  for (const Obligation& obligation : obligations(op.name)) {
    from.so_far.obligations.push_back({.info = obligation.info,
                                       .verdict = Verdict::passed,
                                       .reason = "",
                                       .cases = 2,
                                       .refused = 0,
                                       .elements = 9,
                                       .nonzero = 8,
                                       .evidence = 8,
                                       .compared = 2,
                                       .worst = 0.25,
                                       .seconds = 3,
                                       .counterexample = {}});
    from.ratios.push_back({0.25, 0.125});
  }
  from.so_far.clause_counts.assign(op.clauses.size(), 1000);
  from.so_far.device = "another machine";
  from.so_far.seconds = 1000;
  options.cases = 2;  // the campaign is complete
  const KernelResult result = run_campaign(op, naive, options, {}, {.from = from, .save = {}});
  EXPECT_EQ(result.kernel, &naive);
  EXPECT_EQ(result.device, "another machine");
  EXPECT_GE(result.seconds, 1000);
  for (const ObligationResult& o : result.obligations) {
    EXPECT_EQ(o.verdict, Verdict::passed);
    EXPECT_EQ(o.cases, 2);
    EXPECT_EQ(o.typical, 0.25);
  }
  options.cases = 3;
  const KernelResult more = run_campaign(op, naive, options, {}, {.from = from, .save = {}});
  EXPECT_EQ(more.kernel, &naive);
  EXPECT_TRUE(more.device.starts_with("another machine, then ")) << more.device;
  for (std::size_t c = 0; c < op.clauses.size(); ++c) EXPECT_GT(more.clause_counts[c], 1000U) << op.clauses[c].id;
  for (const ObligationResult& o : more.obligations)
    EXPECT_EQ(o.cases, draw_spec(o.info->by).every == 1 ? 3 : 2) << o.info->id;
}

TEST(Campaign, EvidenceThatTheLastCaseTookAwayIsFoundAgain) {
  const OpDescriptor& op = operation("matmul");
  CampaignOptions options;
  options.only = "FALSIFY-MM-003";  // a one-hot column times a number has three or four zeros
  options.dims = {4, 1, 1};
  const auto shows = [&](int cases) {
    options.cases = cases;
    return run_campaign(op, kernel("matmul/cpu/naive"), options).obligations.front().verdict == Verdict::passed;
  };
  for (options.seed = 1; options.seed < 500 && !(shows(2) && !shows(3) && shows(20)); ++options.seed) {}
  ASSERT_LT(options.seed, 500U) << "no seed drew such cases";
  const Kernel slow = slowed(kernel("matmul/cpu/naive"), std::chrono::milliseconds(800));
  options.cases = 1;
  const auto begin = std::chrono::steady_clock::now();
  run_campaign(op, slow, options);
  // The third case begins in time, and the fourth ends more than a second after it.
  options.time =
      std::chrono::duration_cast<std::chrono::milliseconds>(2.3 * (std::chrono::steady_clock::now() - begin));
  options.cases = 100'000;
  const ObligationResult o = run_campaign(op, slow, options).obligations.front();
  EXPECT_EQ(o.verdict, Verdict::passed) << o.reason;
  EXPECT_GE(o.cases, 4);
}

}  // namespace
}  // namespace assay::falsify::campaign_test
