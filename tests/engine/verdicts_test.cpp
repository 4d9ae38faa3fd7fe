// One wrong kernel for each fault that a campaign must not let pass, and the obligation that must find it.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cfenv>
#include <cmath>
#include <initializer_list>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include "core/errors.hpp"
#include "falsify/engine/campaign.hpp"
#include "falsify/engine/gradients.hpp"
#include "falsify/engine/outcome.hpp"
#include "falsify/engine/report.hpp"
#include "falsify/engine/reports/formats.hpp"
#include "falsify/engine/trial.hpp"

namespace assay::falsify::verdicts_test {
namespace {

using Body = void (*)(const Call&, Device&);

Kernel with(std::string_view like, Body run) {
  Kernel k = kernel(like);
  k.run = run;
  return k;
}

/// Returns the result of obligation `by` of the kernel's operation.
ObligationResult judged(const Kernel& k, std::string_view by, int cases = 12) {
  const OpDescriptor& op = operation(k.op);
  const auto obligation = std::ranges::find(op.obligations, by, &ObligationInfo::by);
  CampaignOptions options;
  options.cases = cases;
  options.only = std::string(obligation->id);
  options.shrink = false;
  options.limit = std::chrono::milliseconds(1500);
  return run_campaign(op, k, options).obligations.front();
}

/// Returns the kind of the finding; empty if nothing was falsified.
std::string_view found(const Kernel& k, std::string_view by, int cases = 12) {
  const ObligationResult result = judged(k, by, cases);
  return result.counterexample ? name(result.counterexample->finding.kind) : "";
}

const Obligation& obligation_of(std::string_view op, std::string_view by) {
  return *std::ranges::find_if(obligations(op), [by](const Obligation& o) { return o.info->by == by; });
}

/// Returns matmul with these limits of extents. The descriptor is kept: workers count clauses by operation.
const OpDescriptor& matmul_within(const std::vector<Index>& least, const std::vector<Index>& most) {
  static std::map<std::pair<std::vector<Index>, std::vector<Index>>, std::pair<std::vector<DimInfo>, OpDescriptor>>
      made;
  auto& [dims, op] = made[{least, most}];
  if (dims.empty()) {
    op = operation("matmul");
    dims.assign(op.dims.begin(), op.dims.end());
    for (std::size_t d = 0; d < dims.size(); ++d) dims[d].min = least[d], dims[d].max = most[d];
    op.dims = dims;
  }
  return op;
}

void right(const Call& call, Device& device) { kernel("matmul/cpu/naive").run(call, device); }
View<float> product_of(const Call& call) { return call.tensors[2].as<float>(); }
float* first_of(const Call& call) { return product_of(call).size() > 0 ? product_of(call).data() : nullptr; }
/// Takes two milliseconds a call, so that a campaign with a time limit ends after its first round.
Kernel slow_matmul() {
  return with("matmul/cpu/naive", [](const Call& call, Device& device) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    right(call, device);
  });
}

TEST(Verdicts, WhatACallMayNotDoIsNamed) {
  const std::pair<const char*, Body> faults[] = {
      {"crash", [](const Call&, Device&) { std::abort(); }},
      {"hang",
       [](const Call&, Device&) {
         for (;;) std::this_thread::sleep_for(std::chrono::seconds(1));
       }},
      {"error", [](const Call&, Device&) { throw std::runtime_error("no"); }},
      {"out of bounds",
       [](const Call& call, Device& device) {
         right(call, device);
         if (const View<float> c = product_of(call); c.size() > 0) c.data()[c.extent() + 3] = 1;
       }},
  };
  for (const auto& [kind, run] : faults) {
    Kernel k = with("matmul/cpu/naive", run);
    // A guard page may turn the stray write into a crash.
    const std::string_view kinds = found(k, "differential", std::string_view(kind) == "hang" ? 1 : 40);
    EXPECT_TRUE(kinds == kind || (kind == std::string_view("out of bounds") && kinds == "crash"))
        << kind << ": '" << kinds << "'";
  }
}

TEST(Verdicts, AWriteAfterTheReturnIsSeen) {
  const OpDescriptor& op = operation("matmul");
  const Kernel k = with("matmul/cpu/naive", right);
  Case c;
  c.dims = {2, 3, 4};
  Worker worker(std::chrono::seconds(5), std::size_t{1} << 24);
  Trial trial(op, k, c, worker);
  trial.run(trial.problem());
  EXPECT_NO_THROW(trial.expect_quiet());
  // A word of the first tensor's region, which starts one page into the arena.
  worker.arena().base()[4096 + 8] ^= std::byte{1};
  EXPECT_THROW(trial.expect_quiet(), Interrupted);
  EXPECT_THROW(trial.run(trial.problem()), Interrupted);
}

TEST(Verdicts, AChangedInputIsOutOfBounds) {
  const Kernel k = with("matmul/cpu/naive", [](const Call& call, Device& device) {
    right(call, device);
    if (const View<float> a = call.tensors[0].as<float>(); a.size() > 0) a.data()[0] += 1;
  });
  EXPECT_EQ(found(k, "differential"), "out of bounds");
}

TEST(Verdicts, FrameSeesWhatDependsOnTheOutputBefore) {
  const Kernel k = with("matmul/cpu/naive", [](const Call& call, Device& device) {
    const float* const c = first_of(call);
    const bool poisoned = c != nullptr && std::isnan(*c);
    right(call, device);
    if (poisoned) *first_of(call) += 1e-30f + std::fabs(*c) * 0x1p-23f;
  });
  EXPECT_EQ(found(k, "frame"), "bits");
}

TEST(Verdicts, DeterminismSeesWhatChangesFromCallToCall) {
  const Kernel k = with("matmul/cpu/naive", [](const Call& call, Device& device) {
    static int calls = 0;
    right(call, device);
    if (float* const c = first_of(call); c != nullptr && ++calls % 3 == 0) *c = std::nextafter(*c, INFINITY);
  });
  EXPECT_EQ(found(k, "determinism"), "bits");
}

TEST(Verdicts, DeterminismSeesDimsThatAreKept) {
  const Kernel k = with("matmul/cpu/naive", [](const Call& call, Device& device) {
    static const std::vector<Index> first = call.dims;
    right(call, device);
    if (float* const c = first_of(call); c != nullptr && call.dims != first) *c = 1e20f;
  });
  EXPECT_EQ(found(k, "determinism", 1), "value");
}

/// Five runs are right, and one of the further runs is not.
TEST(Verdicts, DeterminismSeesWhatSeldomChanges) {
  const Kernel k = with("matmul/cpu/naive", [](const Call& call, Device& device) {
    static int calls = 0;
    right(call, device);
    if (++calls == 6) *first_of(call) = std::nextafter(*first_of(call), INFINITY);
  });
  Case c;
  c.dims = {2, 3, 4};
  const Outcome outcome =
      run_case(operation("matmul"), obligation_of("matmul", "determinism"), k, c, std::chrono::seconds(5));
  ASSERT_TRUE(outcome.finding.has_value());
  EXPECT_EQ(name(outcome.finding->kind), "bits");
}

/// From 1 every step leads to another extent of 1 to 8, the last to 8 itself.
TEST(Verdicts, DeterminismChangesEveryDimThatHasRoom) {
  const OpDescriptor& op = matmul_within({1, 1, 1}, {8, 8, 8});
  const Kernel k = with("matmul/cpu/naive", [](const Call& call, Device& device) {
    static int calls = 0;
    if (++calls == 2 && std::ranges::find(call.dims, 1) != call.dims.end())
      throw std::runtime_error("the same extent twice");
    right(call, device);
  });
  const Obligation& determinism = obligation_of("matmul", "determinism");
  Case c;
  c.dims = {1, 1, 1};
  for (c.seed = 1; c.seed <= 20; ++c.seed) {
    const Outcome outcome = run_case(op, determinism, k, c, std::chrono::seconds(5));
    EXPECT_EQ(outcome.kind, Outcome::Kind::passed)
        << (outcome.finding ? outcome.finding->message : "") << ", seed " << c.seed;
  }
}

/// Kernels that declare varying bits are checked against the bounds in every run.
TEST(Verdicts, EveryRunOfAKernelThatMayVaryIsHeldToItsBounds) {
  Kernel after_nan = with("matmul/cpu/naive", [](const Call& call, Device& device) {
    const float* const c = first_of(call);
    const bool poisoned = c != nullptr && std::isnan(*c);
    right(call, device);
    if (poisoned) *first_of(call) += 1 + std::fabs(*c);
  });
  Kernel third = with("matmul/cpu/naive", [](const Call& call, Device& device) {
    static int calls = 0;
    right(call, device);
    if (float* const c = first_of(call); c != nullptr && ++calls % 3 == 0) *c += 1 + std::fabs(*c);
  });
  Kernel well = with("matmul/cpu/naive", right);
  // The call that violates its bounds explains why two calls differ.
  EXPECT_EQ(found(after_nan, "frame"), "value");
  EXPECT_EQ(found(third, "determinism"), "value");
  after_nan.deterministic = third.deterministic = well.deterministic = false;
  EXPECT_EQ(found(after_nan, "frame"), "value");
  EXPECT_EQ(found(third, "determinism"), "value");
  for (const char* by : {"frame", "determinism"}) EXPECT_EQ(judged(well, by).verdict, Verdict::passed) << by;
}

TEST(Verdicts, TheLastRunOfAKernelThatMayVaryIsHeldToItsBounds) {
  Kernel k = with("matmul/cpu/naive", [](const Call& call, Device& device) {
    static int calls = 0;
    right(call, device);
    if (++calls == 3) *first_of(call) += 1 + std::fabs(*first_of(call));
  });
  k.deterministic = false;
  const Obligation& determinism = obligation_of("matmul", "determinism");
  Case c;
  c.dims = {2, 3, 4};
  const Outcome outcome = run_case(operation("matmul"), determinism, k, c, std::chrono::seconds(5));
  ASSERT_TRUE(outcome.finding.has_value());
  EXPECT_EQ(name(outcome.finding->kind), "value");
}

TEST(Verdicts, ExactInputsAllowNoError) {
  const Kernel k = with("matmul/cpu/naive", [](const Call& call, Device& device) {
    right(call, device);
    float* const c = first_of(call);
    if (c == nullptr || *c == 0) return;
    const View<const float> a = call.tensors[0].as<const float>(), b = call.tensors[1].as<const float>();
    Index terms = 0;
    for (Index k = 0; k < a.dim(1); ++k) terms += a(0, k) != 0 && b(k, 0) != 0;
    // Within the bound of a sum of inexact inputs, but exact inputs allow no error.
    if (terms >= 8) *c = std::nextafter(*c, INFINITY);
  });
  EXPECT_EQ(found(k, "exact"), "value");
}

TEST(Verdicts, SumsOfNothingAreNotMinusZero) {
  const Kernel k = with("matmul/cpu/naive", [](const Call& call, Device& device) {
    right(call, device);
    const View<float> c = product_of(call);
    for (Index i = 0; i < c.dim(0); ++i)
      for (Index j = 0; j < c.dim(1); ++j)
        if (c(i, j) == 0) c(i, j) = call.tensors[0].as<const float>().dim(1) == 0 ? -0.0f : -c(i, j);
  });
  EXPECT_EQ(found(k, "differential", 200), "sign");
}

TEST(Verdicts, CopiesKeepTheSignOfZero) {
  const Kernel k = with("transpose/cpu/naive", [](const Call& call, Device& device) {
    kernel("transpose/cpu/naive").run(call, device);
    const View<float> y = call.tensors[1].as<float>();
    for (Index i = 0; i < y.dim(0); ++i)
      for (Index j = 0; j < y.dim(1); ++j) y(i, j) += 0.0f;
  });
  EXPECT_EQ(found(k, "differential", 60), "bits");
}

/// Each makes a signalling NaN a quiet one, or loses what a NaN carries.
TEST(Verdicts, CopiesKeepNaNsBitForBit) {
  const auto losing = [](std::string_view id, std::size_t output, auto lose) {
    Kernel k = kernel(id);
    k.run = [right = kernel(id).run, output, lose](const Call& call, Device& device) {
      right(call, device);
      const View<float> y = call.tensors[output].as<float>();
      for (Index i = 0; i < y.dim(0); ++i)
        for (Index j = 0; j < y.dim(1); ++j)
          if (std::isnan(y(i, j))) y(i, j) = std::bit_cast<float>(lose(std::bit_cast<std::uint32_t>(y(i, j))));
    };
    return found(k, "nonfinite", 40);
  };
  for (const auto& [id, output] :
       {std::pair("transpose/cpu/naive", 1), {"tensor_layout/cpu/naive", 1}, {"embedding/cpu/naive", 2}}) {
    EXPECT_EQ(losing(id, static_cast<std::size_t>(output), [](std::uint32_t x) { return x | 0x400000U; }), "bits")
        << id;
    EXPECT_EQ(losing(id, static_cast<std::size_t>(output), [](std::uint32_t x) { return x & ~1U; }), "bits") << id;
    EXPECT_EQ(losing(id, static_cast<std::size_t>(output), [](std::uint32_t x) { return x & 0x7fffffffU; }), "bits")
        << id;
    EXPECT_EQ(losing(id, static_cast<std::size_t>(output), [](std::uint32_t x) { return x; }), "") << id;
  }
}

/// Adds what new memory holds to its first output: right wherever that is zero, as pages from the system are.
TEST(Verdicts, NewMemoryHoldsNothingOfUse) {
  static constexpr std::size_t kBytes = std::size_t{1} << 20;
  const Body from_malloc = [](const Call& call, Device& device) {
    right(call, device);
    auto* const memory = static_cast<volatile float*>(std::malloc(kBytes));
    if (float* const c = first_of(call); c != nullptr) *c += memory[kBytes / 8];
    std::free(const_cast<float*>(memory));
  };
  const auto kind_of = [](const Kernel& k) {
    Case c;
    c.dims = {2, 3, 4};
    const Outcome outcome =
        run_case(operation("matmul"), obligation_of("matmul", "differential"), k, c, std::chrono::seconds(60));
    return outcome.finding ? std::string(name(outcome.finding->kind)) : outcome.reason;
  };
  EXPECT_EQ(kind_of(with("matmul/cpu/naive", from_malloc)), "value");
  for (const char* const id : {"matmul/cpu/naive", "matmul/cuda-host/naive16", "matmul/vulkan/naive16"}) {
    if (std::ranges::find(kernels(), id, &Kernel::id) == kernels().end()) continue;  // a build without Vulkan
    Kernel k = kernel(id);
    k.run = [run = k.run](const Call& call, Device& device) {
      run(call, device);
      const Buffer memory = device.allocate(kBytes);
      float added = 0, c = 0;
      device.download(&added, static_cast<const float*>(memory.address()) + kBytes / 8, sizeof added);
      if (product_of(call).size() == 0) return;
      device.download(&c, product_of(call).data(), sizeof c);
      c += added;
      device.upload(product_of(call).data(), &c, sizeof c);
    };
    EXPECT_EQ(kind_of(k), "class") << id;
  }
}

TEST(Verdicts, NonfiniteInputsMustShow) {
  const Kernel k = with("matmul/cpu/naive", [](const Call& call, Device& device) {
    right(call, device);
    const View<float> c = product_of(call);
    for (Index i = 0; i < c.dim(0); ++i)
      for (Index j = 0; j < c.dim(1); ++j)
        if (std::isnan(c(i, j))) c(i, j) = 0;
  });
  EXPECT_EQ(found(k, "nonfinite", 40), "class");
}

TEST(Verdicts, PostconditionsAreEvaluated) {
  const Kernel k = with("matmul/cpu/naive", [](const Call& call, Device& device) {
    right(call, device);
    if (float* const c = first_of(call)) *c += 1e6f;
  });
  EXPECT_EQ(found(k, "postconditions"), "contract");
}

TEST(Verdicts, TheStatisticalTierSeesInputsOfFewerBits) {
  Kernel k = with("matmul/cpu/naive", [](const Call& call, Device&) {
    const View<float> a = call.tensors[0].as<float>(), b = call.tensors[1].as<float>(), c = product_of(call);
    const auto tf32 = [](float x) {
      return std::ldexp(std::nearbyint(std::ldexp(x, 10 - std::ilogb(x))), std::ilogb(x) - 10);
    };
    for (Index i = 0; i < c.dim(0); ++i)
      for (Index j = 0; j < c.dim(1); ++j) {
        float sum = 0;
        for (Index p = 0; p < a.dim(1); ++p) sum += tf32(a(i, p)) * tf32(b(p, j));
        c(i, j) = sum;
      }
  });
  EXPECT_EQ(judged(k, "statistical").verdict, Verdict::falsified);
  k.arithmetic.accumulation = Rounding::toward_zero;
  const ObligationResult truncating = judged(k, "statistical");
  EXPECT_EQ(truncating.verdict, Verdict::not_applicable);
  EXPECT_EQ(truncating.cases, 0);
  EXPECT_FALSE(truncating.reason.empty());
}

/// Detects truncated sums by comparison with rounded ones before any bound applies; the finding names no element and no
/// values.
TEST(Verdicts, SumsThatDoNotRoundToNearestAreFoundWithoutAnElement) {
  const Kernel k = with("matmul/cpu/naive", [](const Call& call, Device& device) {
    const int before = std::fegetround();
    std::fesetround(FE_TOWARDZERO);
    right(call, device);
    std::fesetround(before);
  });
  const Obligation& statistical = obligation_of("matmul", "statistical");
  Case c;
  c.dims = {2, 300, 4};
  const Outcome outcome = run_case(operation("matmul"), statistical, k, c, std::chrono::seconds(5));
  ASSERT_TRUE(outcome.finding.has_value());
  EXPECT_EQ(name(outcome.finding->kind), "rounding");
  EXPECT_NE(outcome.finding->message, "");
  EXPECT_EQ(outcome.finding->tensor, "");
  for (const double number : {outcome.finding->got, outcome.finding->want, outcome.finding->bound})
    EXPECT_EQ(number, 0);
}

TEST(Verdicts, EveryOutputIsCompared) {
  const Kernel k = with("rmsnorm/cpu/naive", [](const Call& call, Device& device) {
    kernel("rmsnorm/cpu/naive").run(call, device);
    if (const View<float> rrms = call.tensors[3].as<float>(); rrms.size() > 0) rrms(rrms.dim(0) - 1) *= 1.5f;
  });
  EXPECT_EQ(found(k, "differential"), "value");
}

TEST(Verdicts, AKernelThatHangsIsNotTriedOn) {
  Kernel k = with("matmul/cpu/naive", [](const Call&, Device&) {
    for (;;) std::this_thread::sleep_for(std::chrono::seconds(1));
  });
  CampaignOptions options;
  options.cases = 1;
  options.shrink = false;
  options.limit = std::chrono::milliseconds(100);
  const KernelResult result = run_campaign(operation("matmul"), k, options);
  EXPECT_EQ(std::ranges::count(result.obligations, Verdict::falsified, &ObligationResult::verdict), 2);
}

TEST(Verdicts, RightKernelsPassWhateverTheyStore) {
  for (const char* id : {"matmul/cpu/naive", "rmsnorm/cpu/naive", "rmsnorm/cpu/naive_f16", "softmax/cpu/naive",
                         "transpose/cpu/naive", "embedding/cpu/naive"}) {
    CampaignOptions options;
    options.cases = 6;
    const OpDescriptor& op = operation(kernel(id).op);
    const KernelResult result = run_campaign(op, kernel(id), options);
    EXPECT_FALSE(result.falsified()) << id;
    for (const ObligationResult& o : result.obligations) {
      EXPECT_TRUE(o.cases > 0 || !o.reason.empty()) << o.info->id;
      EXPECT_FALSE(o.counterexample.has_value())
          << id << " " << o.info->id << ": " << o.counterexample->finding.message;
    }
    EXPECT_EQ(result.clause_counts.size(), op.clauses.size());
    for (std::size_t i = 0; i < result.clause_counts.size(); ++i)
      EXPECT_GT(result.clause_counts[i], 0U) << op.clauses[i].id;
  }
}

Case drawn(std::vector<Index> dims, std::vector<double> params, Strategy strategy, std::uint64_t seed) {
  Case c;
  c.dims = std::move(dims), c.params = std::move(params), c.strategy = strategy, c.seed = seed;
  return c;
}

/// Expects a correct kernel to pass on a case that once falsified it.
void expect_passed(std::string_view id, const Case& c, std::initializer_list<std::string_view> ids) {
  const Kernel& right = kernel(id);
  Worker worker(std::chrono::seconds(10));
  std::size_t tried = 0;
  for (const Obligation& o : obligations(right.op)) {
    if (std::ranges::find(ids, o.info->id) == ids.end()) continue;
    const Outcome outcome = try_obligation(o.check, operation(right.op), right, c, worker);
    EXPECT_EQ(outcome.kind, Outcome::Kind::passed)
        << o.info->id << ": " << (outcome.finding ? outcome.finding->message : "");
    ++tried;
  }
  EXPECT_EQ(tried, ids.size());
}

/// The sum of a group's gradients overflows float16 to infinity although its terms do not.
TEST(Verdicts, SixteenBitsMayOverflowWhereTheirPartsDoNot) {
  expect_passed("attention_backward/cuda-host/tiled_f16",
                drawn({1, 1, 1, 6, 48, 4}, {0.125, 0}, Strategy::graded, 7058813809428325661U),
                {"FALSIFY-ATTN-BWD-006", "FALSIFY-ATTN-BWD-002"});
}

/// A scale may be rounded up to the smallest normal half from below, so that its double is below twice that.
TEST(Verdicts, TwiceAScaleMayBeLessThanTwiceTheSmallestNormal) {
  expect_passed("q4_k_quantize/cpu/naive", drawn({2049, 1}, {}, Strategy::gaussian, 13640373762007390410U),
                {"FALSIFY-Q4KQ-008"});
}

/// Rounding of the saved logsumexp leaves a score of 6e10 at 701 above it: the power times dy exceeds the largest
/// double, while a float32 kernel computes a difference of zero.
TEST(Verdicts, APowerBeyondDoubleMayBeOneByRounding) {
  expect_passed("attention_backward/cpu/naive",
                drawn({4, 15, 9, 9, 9, 4}, {0.11520314961671829, 0}, Strategy::graded, 2605645823697737226U),
                {"FALSIFY-ATTN-BWD-004"});
}

/// dy is drawn proportional to x / weight, and one of 2048 weights is 0.
TEST(Verdicts, AWeightOfZeroHasNoQuotient) {
  expect_passed("rmsnorm_backward/cpu/naive", drawn({63, 2048}, {}, Strategy::directed, 2341700951250986639U),
                {"FALSIFY-RMSNORM-BWD-008"});
}

/// A kernel known to be correct exposes a wrong reference.
class NaiveKernels : public testing::TestWithParam<std::string> {};

TEST_P(NaiveKernels, AgreeWithTheirReference) {
  const ObligationResult result = judged(kernel(GetParam() + "/cpu/naive"), "differential", 16);
  EXPECT_EQ(result.verdict, Verdict::passed)
      << (result.counterexample ? result.counterexample->finding.message : result.reason);
}

std::vector<std::string> operations_with_naive_kernels() {
  std::vector<std::string> names;
  for (const OpDescriptor* op : operations())
    for (const Kernel* k : kernels_of(op->name))
      if (k->id == std::string(op->name) + "/cpu/naive") names.emplace_back(op->name);
  return names;
}
INSTANTIATE_TEST_SUITE_P(Operations, NaiveKernels, testing::ValuesIn(operations_with_naive_kernels()),
                         [](const auto& i) { return i.param; });

TEST(Verdicts, OtherSeedsAreOtherCases) {
  const auto elements = [](std::uint64_t seed) {
    CampaignOptions options;
    options.cases = 3;
    options.seed = seed;
    options.only = "FALSIFY-MM-002";
    return run_campaign(operation("matmul"), kernel("matmul/cpu/naive"), options).obligations.front().elements;
  };
  EXPECT_EQ(elements(5), elements(5));
  EXPECT_NE(elements(5), elements(6));
}

TEST(Verdicts, WhatIsShrunkIsReported) {
  CampaignOptions options;
  options.cases = 30;
  options.stop_at_first = true;
  const KernelResult result = run_campaign(operation("matmul"), kernel("mutant/cpu/matmul/dropped_last_k"), options);
  const auto failed = std::ranges::find(result.obligations, Verdict::falsified, &ObligationResult::verdict);
  ASSERT_NE(failed, result.obligations.end());
  EXPECT_NE(failed->counterexample->smallest, failed->counterexample->first);
  const auto json = to_json(operation("matmul"), result);
  EXPECT_EQ(json["status"], "falsified");
  const auto report = make_report({json}, nlohmann::json::object(), 1);
  EXPECT_EQ(report["exit_code"], 1);
  EXPECT_EQ(report["totals"]["falsified"], 1);
}

TEST(Verdicts, MistrustFailsTheRunAndRefusalIsNoPass) {
  KernelResult result;
  result.kernel = &kernel("matmul/cpu/naive");
  result.obligations.emplace_back().info = &operation("matmul").obligations[0];
  result.obligations[0].verdict = Verdict::mistrusted;
  const auto report = [&] { return make_report({to_json(operation("matmul"), result)}, nlohmann::json::object(), 1); };
  EXPECT_TRUE(report_failed(report()));
  EXPECT_EQ(report()["exit_code"], 1);
  EXPECT_NE(junit_xml(report()).find("<failure type=\"mistrusted\""), std::string::npos);
  EXPECT_NE(junit_xml(report()).find("<testsuites name=\"assay\" tests=\"1\" failures=\"1\""), std::string::npos);
  EXPECT_EQ(nlohmann::json::parse(sarif(report()))["runs"][0]["results"].size(), 1U);
  result.obligations[0].verdict = Verdict::refused;
  EXPECT_FALSE(report_failed(report()));
  EXPECT_EQ(report()["totals"]["passed"], 0);
  EXPECT_EQ(report()["totals"]["refused"], 1);
}

TEST(Verdicts, TheCallBeforeIsMade) {
  // Correct from the second call on.
  const Kernel k = with("matmul/cpu/naive", [](const Call& call, Device& device) {
    static int calls = 0;
    if (calls++ > 0) right(call, device);
  });
  Case c;
  c.dims = {2, 3, 4};
  const Obligation& differential = obligation_of("matmul", "differential");
  EXPECT_EQ(run_case(operation("matmul"), differential, k, c, std::chrono::seconds(5)).kind, Outcome::Kind::falsified);
  c.prelude = {1, 2, 3};
  EXPECT_EQ(run_case(operation("matmul"), differential, k, c, std::chrono::seconds(5)).kind, Outcome::Kind::passed);
}

/// A kernel that keeps the parameters of its first call is wrong in a later call with others.
TEST(Verdicts, TheCallBeforeHasOtherParameters) {
  const Kernel k = with("scale/cpu/naive", [](const Call& call, Device& device) {
    static const double kept = call.params[0];
    Call again = call;
    again.params[0] = kept;
    kernel("scale/cpu/naive").run(again, device);
  });
  Case c;
  c.dims = {3, 4};
  c.params = {2};
  c.strategy = Strategy::gaussian;
  const Obligation& differential = obligation_of("scale", "differential");
  EXPECT_EQ(run_case(operation("scale"), differential, k, c, std::chrono::seconds(5)).kind, Outcome::Kind::passed);
  c.prelude = {2, 2};
  EXPECT_EQ(run_case(operation("scale"), differential, k, c, std::chrono::seconds(5)).kind, Outcome::Kind::falsified);
}

TEST(Verdicts, AReadOnePastTheEndMeetsTheFenceThatTheCaseAsksFor) {
  const Kernel k = with("matmul/cpu/naive", [](const Call& call, Device& device) {
    const View<float> a = call.tensors[0].as<float>();
    static_cast<void>(const_cast<volatile float*>(a.data())[a.extent()]);
    right(call, device);
  });
  Case c;
  c.dims = {2, 3, 4};
  const Obligation& differential = obligation_of("matmul", "differential");
  EXPECT_EQ(run_case(operation("matmul"), differential, k, c, std::chrono::seconds(5)).kind, Outcome::Kind::passed);
  c.placement = Placement::page_end;
  const Outcome outcome = run_case(operation("matmul"), differential, k, c, std::chrono::seconds(5));
  ASSERT_TRUE(outcome.finding.has_value());
  EXPECT_EQ(name(outcome.finding->kind), "crash");
}

TEST(Verdicts, AKernelIsJudgedByTheArithmeticThatItDeclares) {
  Kernel k = with("matmul/cpu/naive", [](const Call& call, Device&) {
    const View<float> a = call.tensors[0].as<float>(), b = call.tensors[1].as<float>(), c = product_of(call);
    const auto bf16 = [](float x) { return std::bit_cast<float>(std::bit_cast<std::uint32_t>(x) & 0xffff0000U); };
    for (Index i = 0; i < c.dim(0); ++i)
      for (Index j = 0; j < c.dim(1); ++j) {
        float sum = 0;
        for (Index p = 0; p < a.dim(1); ++p) sum += bf16(a(i, p)) * bf16(b(p, j));
        c(i, j) = sum;
      }
  });
  EXPECT_EQ(judged(k, "differential").verdict, Verdict::falsified);
  k.arithmetic.inputs = Format::bf16;
  k.arithmetic.input_rounding = Rounding::toward_zero;
  EXPECT_EQ(judged(k, "differential").verdict, Verdict::passed);
}

TEST(Verdicts, ACampaignThatComparedNothingIsMistrusted) {
  CampaignOptions options;
  options.cases = 1;
  options.only = "FALSIFY-MM-005";  // other obligations may start with a joint shape
  bool met = false;
  for (options.seed = 1; options.seed < 300 && !met; ++options.seed) {
    const ObligationResult o =
        run_campaign(operation("matmul"), kernel("matmul/cpu/naive"), options).obligations.front();
    if (o.elements > 0) continue;
    met = true;
    EXPECT_EQ(o.verdict, Verdict::mistrusted);
    EXPECT_EQ(o.reason, "no output element was compared");
  }
  EXPECT_TRUE(met) << "no seed drew an empty output";
}

/// When the time is up before anything was compared, a few more cases are tried.
TEST(Verdicts, ACampaignThatComparedNothingIsTriedOnWhenTheTimeIsUp) {
  CampaignOptions options;
  options.only = "FALSIFY-MM-005";
  std::int64_t elements = 1;
  for (options.seed = 0; elements > 0 && ++options.seed < 300;) {
    options.cases = 1;
    elements = run_campaign(operation("matmul"), kernel("matmul/cpu/naive"), options).obligations.front().elements;
  }
  ASSERT_EQ(elements, 0) << "no seed drew an empty output";
  options.cases = 100'000;
  options.time = std::chrono::milliseconds(1);
  const Kernel slow = slow_matmul();
  const ObligationResult o = run_campaign(operation("matmul"), slow, options).obligations.front();
  EXPECT_GT(o.cases, 1);
  EXPECT_EQ(o.verdict, Verdict::passed) << o.reason;
}

TEST(Verdicts, ACampaignWithoutACaseIsMistrusted) {
  CampaignOptions options;
  options.cases = 0;
  for (const ObligationResult& o : run_campaign(operation("matmul"), kernel("matmul/cpu/naive"), options).obligations) {
    EXPECT_EQ(o.verdict, Verdict::mistrusted) << o.info->id;
    EXPECT_EQ(o.reason, "no output element was compared") << o.info->id;
  }
}

TEST(Verdicts, AGradientLinkHoldsOnlyWithinItsTolerance) {
  const auto broken = [](double worst, int compared) {
    const GradientReport report{"matmul", "a", {LinkResult{Link::dual, worst, compared, {}}}};
    return report.broken() != nullptr;
  };
  EXPECT_FALSE(broken(1, 3));
  EXPECT_TRUE(broken(1.01, 3));
  EXPECT_TRUE(broken(NAN, 3));
  EXPECT_TRUE(broken(0, 0));
}

TEST(Outcomes, TheFirstFindingStaysWhateverFollows) {
  const auto finding = [](Finding::Kind kind) { return Outcome::falsify({kind, "", "", {}, 0, 0, 0}); };
  Outcome passed_first;
  passed_first.elements = 3;
  passed_first &= finding(Finding::Kind::value);
  EXPECT_EQ(passed_first.kind, Outcome::Kind::falsified);
  passed_first &= finding(Finding::Kind::other_class);
  passed_first &= Outcome{};
  ASSERT_TRUE(passed_first.finding.has_value());
  EXPECT_EQ(name(passed_first.finding->kind), "value");
  EXPECT_EQ(passed_first.elements, 3);
}

/// Wrong for every nonempty output, and slow enough that the whole search takes twenty seconds.
void wrong_and_slow(const Call& call, Device& device) {
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  right(call, device);
  if (float* const c = first_of(call)) *c += 1 + std::fabs(*c);
}

TEST(Campaign, ShrinkingEndsWithTheCampaignsTime) {
  const OpDescriptor& op = operation("matmul");
  CampaignOptions options;
  options.cases = 5;
  options.only = std::string(std::ranges::find(op.obligations, "differential", &ObligationInfo::by)->id);
  options.time = std::chrono::milliseconds(500);
  options.shrink_budget = std::chrono::minutes(10);
  const auto begin = std::chrono::steady_clock::now();
  const ObligationResult o = run_campaign(op, with("matmul/cpu/naive", wrong_and_slow), options).obligations.front();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
  ASSERT_TRUE(o.counterexample.has_value());
  EXPECT_TRUE(!o.counterexample->shrink_complete || o.counterexample->shrink_tried == 0);
}

/// A quarter of nonzero values is enough evidence when the time is up, and is not tried further.
TEST(Campaign, JustEnoughEvidenceIsEnoughWhenTheTimeIsUp) {
  const OpDescriptor& op = matmul_within({4, 1, 1}, {4, 1, 1});
  const Kernel k = slow_matmul();
  CampaignOptions options;
  options.only = std::string(std::ranges::find(op.obligations, "exact", &ObligationInfo::by)->id);
  options.cases = 1;
  options.seed = 0;
  double evidence = 0;
  while (evidence != 1 && ++options.seed < 30) evidence = run_campaign(op, k, options).obligations.front().evidence;
  ASSERT_EQ(evidence, 1) << "no seed drew a column with a single 1";
  options.cases = 100'000;
  options.time = std::chrono::milliseconds(1);
  const ObligationResult o = run_campaign(op, k, options).obligations.front();
  EXPECT_EQ(o.cases, 1);
  EXPECT_EQ(o.verdict, Verdict::passed) << o.reason;
}

/// A kernel that is wrong from its third call on is correct in a fresh process, both alone and after one call. The
/// report counts the reruns: all of 20 runs fail.
TEST(Campaign, AFailureThatEarlierCallsDecideIsTriedTwentyTimes) {
  const OpDescriptor& op = matmul_within({1, 1, 1}, {4, 4, 4});
  CampaignOptions options;
  options.cases = 5;
  options.only = std::string(std::ranges::find(op.obligations, "differential", &ObligationInfo::by)->id);
  const Kernel k = with("matmul/cpu/naive", [](const Call& call, Device& device) {
    static int calls = 0;
    right(call, device);
    if (++calls >= 3) *first_of(call) = NAN;
  });
  const ObligationResult o = run_campaign(op, k, options).obligations.front();
  ASSERT_TRUE(o.counterexample.has_value());
  EXPECT_EQ(o.counterexample->number, 3);
  EXPECT_EQ(o.counterexample->reproduction, "20 of 20 further runs: timing or earlier calls decide");
}

TEST(Campaign, ShrinkingHasItsWholeBudgetWhereNoTimeIsSet) {
  const OpDescriptor& op = operation("matmul");
  CampaignOptions options;
  options.cases = 5;
  options.only = std::string(std::ranges::find(op.obligations, "differential", &ObligationInfo::by)->id);
  options.shrink_budget = std::chrono::minutes(1);
  const Kernel k = with("matmul/cpu/naive", [](const Call& call, Device& device) {
    right(call, device);
    if (float* const c = first_of(call)) *c += 1 + std::fabs(*c);
  });
  const ObligationResult all = run_campaign(op, k, options).obligations.front();
  ASSERT_TRUE(all.counterexample.has_value());
  EXPECT_TRUE(all.counterexample->shrink_complete);
  EXPECT_GT(all.counterexample->shrink_tried, 0);
  EXPECT_EQ(all.counterexample->smallest.dims, (std::vector<Index>{1, 0, 1}));
  options.shrink = false;
  const ObligationResult none = run_campaign(op, k, options).obligations.front();
  ASSERT_TRUE(none.counterexample.has_value());
  EXPECT_EQ(none.counterexample->shrink_tried, 0);
  EXPECT_EQ(none.counterexample->smallest, none.counterexample->first);
}

}  // namespace
}  // namespace assay::falsify::verdicts_test
