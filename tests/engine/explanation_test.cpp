// Contents of a finding: the call that failed, elements not written, the obligation that explains the fault, and races.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "falsify/engine/campaign.hpp"
#include "falsify/engine/checkpoint.hpp"
#include "falsify/engine/draw.hpp"
#include "falsify/engine/report.hpp"
#include "falsify/engine/reports/formats.hpp"
#include "falsify/engine/trial.hpp"
#include "runtime/limits.hpp"

namespace assay::falsify::explanation_test {
namespace {

constexpr float kFar = 0x1p90F;

/// Calls the operation's naive kernel, for use in a body.
template <const char* op>
void right(const Call& call, Device& device) {
  kernel(std::string(op) + "/cpu/naive").run(call, device);
}

template <const char* op, class Spoil>
Kernel corrupted(Spoil spoil) {
  Kernel k = kernel(std::string(op) + "/cpu/naive");
  k.run = [spoil](const Call& call, Device& device) {
    right<op>(call, device);
    spoil(call);
  };
  return k;
}

/// Returns the last element of the first output.
float* last_of(std::string_view op, const Call& call) {
  const auto output = static_cast<std::size_t>(outputs_of(operation(op)).front());
  const View<float> y = call.tensors[output].as<float>();
  if (y.size() == 0) return nullptr;
  Index offset = 0;
  for (int axis = 0; axis < call.tensors[output].shape.rank(); ++axis)
    offset += (call.tensors[output].shape[axis] - 1) * call.tensors[output].strides[axis];
  return y.data() + offset;
}

/// Returns a kernel that is wrong in every call with dims other than the process's first.
template <const char* op>
Kernel wrong_at_other_dims() {
  return corrupted<op>([](const Call& call) {
    static std::vector<Index> first;
    if (first.empty()) first = call.dims;
    if (float* const y = last_of(op, call); y != nullptr && call.dims != first) *y = kFar;
  });
}

/// Every obligation that calls with other dims must name those dims: the element and the inputs belong to that call.
template <const char* op>
int relations_that_name_their_call() {
  const OpDescriptor& descriptor = operation(op);
  const Kernel k = wrong_at_other_dims<op>();
  int named = 0;
  for (const Obligation& o : obligations(op)) {
    if (o.info->by == "statistical") continue;  // its first calls are probes, so the case's own call has other dims
    for (std::uint64_t number = 0; number < 8; ++number) {
      const Case c = draw(descriptor, *o.info, 1, number).value();
      const Outcome outcome = run_case(descriptor, o, k, c, std::chrono::seconds(10));
      if (!outcome.finding || outcome.finding->tensor.empty()) continue;
      const Finding& f = *outcome.finding;
      if (!f.call || f.call->call.dims == c.dims) {
        ADD_FAILURE() << o.info->id << ": " << f.message << " at " << describe(descriptor, c);
        continue;
      }
      EXPECT_TRUE(f.call->alone) << o.info->id;
      EXPECT_GE(f.call->of, 2) << o.info->id;
      // "has", or "have" for several.
      EXPECT_NE(f.call->relation.find(" ha"), std::string::npos) << o.info->id << ": " << f.call->relation;
      EXPECT_NE(f.call->relation.find('='), std::string::npos) << o.info->id << ": " << f.call->relation;
      EXPECT_EQ(f.got, kFar) << o.info->id;
      const auto tensor = std::ranges::find(descriptor.tensors, f.tensor, &TensorInfo::name);
      const Shape shape = tensor->shape(f.call->call.dims);
      EXPECT_EQ(f.index.rank(), shape.rank());
      for (int axis = 0; axis < shape.rank(); ++axis)
        EXPECT_EQ(f.index[axis], shape[axis] - 1) << o.info->id << " " << describe(descriptor, f.call->call);
      for (const int t : f.call->call.values.empty() ? std::vector<int>{} : inputs_of(descriptor)) {
        const auto input = static_cast<std::size_t>(t);
        EXPECT_EQ(f.call->call.values[input].size(),
                  static_cast<std::size_t>(descriptor.tensors[input].shape(f.call->call.dims).size()));
      }
      ++named;
      break;
    }
  }
  return named;
}

constexpr char kMatmul[] = "matmul", kRmsnorm[] = "rmsnorm", kSoftmax[] = "softmax", kAttention[] = "attention",
               kDecode[] = "attention_decode", kLora[] = "lora_linear", kEmbedding[] = "embedding",
               kMeanPool[] = "mean_pool", kScale[] = "scale", kRope[] = "rope", kAdamw[] = "adamw_step";

TEST(FailedCall, IsNamedByEveryRelationThatCallsWithOtherDims) {
  EXPECT_GE(relations_that_name_their_call<kMatmul>(), 3);
  EXPECT_GE(relations_that_name_their_call<kRmsnorm>(), 2);
  EXPECT_GE(relations_that_name_their_call<kSoftmax>(), 2);
  EXPECT_GE(relations_that_name_their_call<kAttention>(), 2);
  EXPECT_GE(relations_that_name_their_call<kDecode>(), 2);
  EXPECT_GE(relations_that_name_their_call<kLora>(), 2);
  EXPECT_GE(relations_that_name_their_call<kMeanPool>(), 2);
}

const Obligation& obligation_of(std::string_view op, std::string_view by) {
  return *std::ranges::find_if(obligations(op), [by](const Obligation& o) { return o.info->by == by; });
}

Outcome tried(std::string_view op, std::string_view by, const Kernel& k, const std::vector<Index>& dims,
              Strategy strategy = Strategy::gaussian) {
  Case c;
  c.dims = dims;
  for (const ParamInfo& p : operation(op).params) c.params.push_back(p.typical);
  c.strategy = strategy;
  return run_case(operation(op), obligation_of(op, by), k, c, std::chrono::seconds(10));
}

TEST(FailedCall, OfScaledInputsSaysByHowMuch) {
  const Kernel k = corrupted<kMatmul>([](const Call& call) {
    static int calls = 0;
    if (++calls == 2) *last_of("matmul", call) = kFar;
  });
  const Outcome outcome = tried("matmul", "scaling", k, {2, 3, 4});
  ASSERT_TRUE(outcome.finding && outcome.finding->call);
  EXPECT_EQ(outcome.finding->call->number, 2);
  EXPECT_EQ(outcome.finding->call->of, 2);
  EXPECT_NE(outcome.finding->call->relation.find("call 1 has 2^"), std::string::npos)
      << outcome.finding->call->relation;
  EXPECT_NE(outcome.finding->call->relation.find(" times a"), std::string::npos) << outcome.finding->call->relation;
}

TEST(FailedCall, MayBeTheFirst) {
  const Kernel k = corrupted<kMatmul>([](const Call& call) {
    static int calls = 0;
    if (++calls == 1) *last_of("matmul", call) = kFar;
  });
  const Outcome outcome = tried("matmul", "row_permutation", k, {5, 3, 4});
  ASSERT_TRUE(outcome.finding && outcome.finding->call);
  EXPECT_EQ(outcome.finding->call->number, 1);
  EXPECT_NE(outcome.finding->call->relation.find("call 2 has a in another order"), std::string::npos)
      << outcome.finding->call->relation;
  EXPECT_EQ(outcome.finding->index, (Shape{4, 3}));
}

/// Two calls differ although each is within its bounds: only the relation fails.
TEST(FailedCall, OfTwoCallsWithinTheirBoundsNoneIsWrongByItself) {
  const Kernel k = corrupted<kMatmul>([](const Call& call) {
    static int calls = 0;
    if (float* const y = last_of("matmul", call); ++calls == 3) *y = std::nextafter(*y, INFINITY);
  });
  const Outcome outcome = tried("matmul", "determinism", k, {2, 3, 4});
  ASSERT_TRUE(outcome.finding && outcome.finding->call);
  EXPECT_FALSE(outcome.finding->call->alone);
  EXPECT_EQ(outcome.finding->call->number, 3);
  EXPECT_EQ(name(outcome.finding->kind), "bits");
  EXPECT_NE(outcome.finding->call->relation.find("call 1 is the same"), std::string::npos)
      << outcome.finding->call->relation;
}

TEST(FailedCall, IsTheOneDuringWhichTheProcessEnded) {
  const Kernel k = corrupted<kRmsnorm>([](const Call& call) {
    static std::vector<Index> first = call.dims;
    if (call.dims != first) std::abort();
  });
  const Outcome outcome = tried("rmsnorm", "determinism", k, {3, 5});
  ASSERT_TRUE(outcome.finding && outcome.finding->call);
  EXPECT_EQ(name(outcome.finding->kind), "crash");
  EXPECT_EQ(outcome.finding->call->number, 2);
  EXPECT_NE(outcome.finding->call->call.dims, (std::vector<Index>{3, 5}));
}

TEST(FailedCall, IsLeftOutWhereTheCaseHasNoOther) {
  const Kernel k = corrupted<kMatmul>([](const Call& call) { *last_of("matmul", call) = kFar; });
  const Outcome outcome = tried("matmul", "differential", k, {2, 3, 4});
  ASSERT_TRUE(outcome.finding.has_value());
  EXPECT_FALSE(outcome.finding->call.has_value());
}

TEST(NotWritten, IsSaidOfAnElementThatHoldsWhatItHeld) {
  for (const char* by : {"differential", "frame", "determinism", "scaling"}) {
    Kernel k = kernel("matmul/cpu/naive");
    k.run = [](const Call& call, Device& device) {
      float* const y = last_of("matmul", call);
      const float before = y != nullptr ? *y : 0;
      right<kMatmul>(call, device);
      if (y != nullptr) std::memcpy(y, &before, sizeof before);
    };
    const Outcome outcome = tried("matmul", by, k, {2, 3, 4});
    ASSERT_TRUE(outcome.finding.has_value()) << by;
    EXPECT_EQ(name(outcome.finding->kind), "not written") << by << ": " << outcome.finding->message;
    // Determinism checks the call with other dims first.
    const std::vector<Index> dims =
        outcome.finding->call ? outcome.finding->call->call.dims : std::vector<Index>{2, 3, 4};
    EXPECT_EQ(outcome.finding->index, (Shape{dims[0] - 1, dims[2] - 1})) << by;
    EXPECT_EQ(outcome.finding->message.find("nan"), std::string::npos) << outcome.finding->message;
  }
}

TEST(NotWritten, IsSaidOfBytes) {
  Kernel k = kernel("q4_k_quantize/cpu/naive");
  k.run = [](const Call&, Device&) {};
  Case c = draw(operation("q4_k_quantize"), *obligation_of("q4_k_quantize", "frame").info, 1, 1).value();
  const Outcome outcome =
      run_case(operation("q4_k_quantize"), obligation_of("q4_k_quantize", "frame"), k, c, std::chrono::seconds(10));
  ASSERT_TRUE(outcome.finding.has_value());
  EXPECT_EQ(name(outcome.finding->kind), "not written") << outcome.finding->message;
}

/// A NaN computed by the kernel, and zeros, count as written.
TEST(NotWritten, IsNotSaidOfWhatWasWritten) {
  for (const float x : {NAN, 0.0F, kFar}) {
    Kernel k = kernel("matmul/cpu/naive");
    static float value;
    value = x;
    k.run = [](const Call& call, Device& device) {
      right<kMatmul>(call, device);
      if (float* const y = last_of("matmul", call)) *y = value;
    };
    const Outcome outcome = tried("matmul", "frame", k, {2, 3, 4});
    ASSERT_TRUE(outcome.finding.has_value());
    EXPECT_NE(name(outcome.finding->kind), "not written") << x;
  }
}

CampaignOptions quick(int cases = 30) {
  CampaignOptions options;
  options.cases = cases;
  return options;
}

KernelResult of_mutant(std::string_view id, CampaignOptions options = quick()) {
  const Kernel& k = kernel(id);
  return run_campaign(operation(k.op), k, options);
}

TEST(Explanation, IsOneForEachFaultAndAloneIsShrunk) {
  const KernelResult result = of_mutant("mutant/cpu/matmul/dropped_last_k");
  const ObligationResult* const best = result.explanation();
  ASSERT_NE(best, nullptr);
  EXPECT_EQ(best->info->by, "exact") << best->info->id;
  int failed = 0;
  for (const ObligationResult& o : result.obligations)
    if (o.counterexample) {
      ++failed;
      EXPECT_EQ(o.counterexample->shrink_tried > 0, &o == best) << o.info->id;
      EXPECT_TRUE(o.counterexample->fails_again) << o.info->id;
    }
  EXPECT_GT(failed, 3);
  auto report = make_report({to_json(operation("matmul"), result)}, nlohmann::json::object(), 1);
  const std::string text = table(report);
  EXPECT_EQ(text.find("FALSIFIED"), text.rfind("FALSIFIED")) << text;
  EXPECT_NE(text.find("also fails: FALSIFY-MM-00"), std::string::npos) << text;
  EXPECT_EQ(report["kernels"][0]["explanation"]["also_fails"].size(), static_cast<std::size_t>(failed) - 1);
  EXPECT_EQ(nlohmann::json::parse(sarif(report))["runs"][0]["results"].size(), 1U);
}

TEST(Explanation, IsTheRelationThatNamesTheFault) {
  const auto explained = [](std::string_view id) {
    const KernelResult result = of_mutant(id);
    return result.explanation() == nullptr ? std::string() : std::string(result.explanation()->info->by);
  };
  const Kernel first_rows = corrupted<kRmsnorm>([](const Call& call) {
    if (float* const y = last_of("rmsnorm", call); y != nullptr && call.dims[0] > 4) *y = -*y;
  });
  const KernelResult result = run_campaign(operation("rmsnorm"), first_rows, quick());
  ASSERT_NE(result.explanation(), nullptr);
  EXPECT_EQ(result.explanation()->info->by, "slicing");
  EXPECT_EQ(explained("mutant/cpu/attention/future_seen"), "causality");
  // The relation only holds within bounds, so it adds nothing.
  EXPECT_EQ(explained("mutant/cpu/attention/heads_by_modulo"), "differential");
}

std::string explained_by(const Kernel& k, CampaignOptions options = quick(40)) {
  const KernelResult result = run_campaign(operation(k.op), k, options);
  return result.explanation() == nullptr ? std::string() : std::string(result.explanation()->info->by);
}

/// Changes every element of the first output.
template <const char* op, class Change>
Kernel corrupted_everywhere(Change change) {
  return corrupted<op>([change](const Call& call) {
    const Tensor& y = call.tensors[static_cast<std::size_t>(outputs_of(operation(op)).front())];
    std::vector<Index> at(static_cast<std::size_t>(y.shape.rank()));
    for (Index i = 0; i < y.shape.size(); ++i) {
      Index offset = 0, rest = i;
      for (int axis = y.shape.rank(); axis-- > 0; rest /= y.shape[axis])
        offset += rest % y.shape[axis] * y.strides[axis];
      float& x = y.as<float>().data()[offset];
      x = change(call, x);
    }
  });
}

/// Any wrong value breaks relations, so the oracle's finding comes first.
TEST(Explanation, OfAWrongValueIsTheOracleAndNoRelation) {
  // An inaccurate exponential also breaks masking, even without a mask; decay applied twice also breaks the pure decay;
  // too large a frequency also breaks sums of angles.
  EXPECT_EQ(explained_by(corrupted_everywhere<kSoftmax>([](const Call&, float x) { return x * 1.001F; })),
            "differential");
  EXPECT_EQ(explained_by(corrupted_everywhere<kAdamw>([](const Call& call, float p) {
              return p * (1 - static_cast<float>(call.params[0] * call.params[4]));
            })),
            "differential");
  EXPECT_EQ(explained_by(corrupted_everywhere<kRope>(
                [](const Call& call, float x) { return x * (call.params[0] > 1000 ? 1.001F : 1); })),
            "differential");
}

/// A fault within the bounds of each call is visible to relations only.
TEST(Explanation, OfWhatOnlyARelationSeesIsTheRelation) {
  const Kernel k = corrupted_everywhere<kRmsnorm>(
      [](const Call& call, float x) { return call.dims[0] > 4 ? std::nextafter(x, 0.0F) : x; });
  EXPECT_EQ(explained_by(k), "slicing");
}

/// A crash is reported by the check of the call itself, with the signal and the likely causes.
TEST(Explanation, OfACrashIsTheCrash) {
  const Kernel k = corrupted<kScale>([](const Call& call) {
    if (call.dims[0] > 2) raise(SIGSEGV);
  });
  const KernelResult result = run_campaign(operation("scale"), k, quick(20));
  const ObligationResult* const best = result.explanation();
  ASSERT_NE(best, nullptr);
  EXPECT_EQ(best->info->by, "frame");
  EXPECT_EQ(name(best->counterexample->finding.kind), "crash");
  const std::string text = table(make_report({to_json(operation("scale"), result)}, nlohmann::json::object(), 1));
  EXPECT_NE(text.find("  crash    the kernel crashed: signal 11"), std::string::npos) << text;
  EXPECT_NE(text.find("  suspect  an index, a stride or a size"), std::string::npos) << text;
}

/// The postconditions check, which otherwise only names clauses, reports a crash in full.
TEST(Explanation, OfACrashIsNotSeeTheClause) {
  const Kernel k = corrupted<kMatmul>([](const Call& call) {
    if (call.dims[0] > 2) raise(SIGSEGV);
  });
  CampaignOptions options = quick(20);
  options.only = std::string(obligation_of("matmul", "postconditions").info->id);
  const KernelResult result = run_campaign(operation("matmul"), k, options);
  const std::string text = table(make_report({to_json(operation("matmul"), result)}, nlohmann::json::object(), 1));
  EXPECT_EQ(text.find("see the clause"), std::string::npos) << text;
}

TEST(Explanation, BeginsWithDamage) {
  const Kernel k = corrupted<kMatmul>([](const Call& call) {
    const View<float> c = call.tensors[2].as<float>();
    if (c.size() > 0) c.data()[c.extent() + 2] = 1, *c.data() = kFar;
  });
  CampaignOptions options = quick(12);
  const KernelResult result = run_campaign(operation("matmul"), k, options);
  ASSERT_NE(result.explanation(), nullptr);
  const std::string_view kind = name(result.explanation()->counterexample->finding.kind);
  EXPECT_TRUE(kind == "out of bounds" || kind == "crash") << kind;
}

TEST(Explanation, NamesTheEarlierCallOnWhichItDepends) {
  Kernel k = kernel("scale/cpu/naive");
  k.run = [](const Call& call, Device& device) {
    static const double kept = call.params[0];
    Call again = call;
    again.params[0] = kept;
    kernel("scale/cpu/naive").run(again, device);
  };
  CampaignOptions options = quick(20);
  options.only = std::string(obligation_of("scale", "differential").info->id);
  const ObligationResult o = run_campaign(operation("scale"), k, options).obligations.front();
  ASSERT_TRUE(o.counterexample.has_value());
  const std::string text = o.counterexample->reproduction;
  EXPECT_NE(text.find("after a call with "), std::string::npos) << text;
  EXPECT_NE(text.find("alpha="), std::string::npos) << text;
  EXPECT_FALSE(o.counterexample->smallest.prelude.empty());
  EXPECT_NE(describe(operation("scale"), o.counterexample->smallest).find("after a call with "), std::string::npos);
}

using nlohmann::json;

/// Returns a kernel that writes a wrong last element of the first output, for any operation.
Kernel corrupted_kernel(std::string_view op) {
  Kernel k = kernel(std::string(op) + "/cpu/naive");
  k.run = [op, right = k.run](const Call& call, Device& device) {
    right(call, device);
    if (float* const y = last_of(op, call)) *y = kFar;
  };
  return k;
}

/// Returns the reported counterexample of one obligation; `text` gets the table that shows it.
json counterexample_of(const Kernel& k, std::string_view by, bool shrink, std::string& text) {
  CampaignOptions options = quick(6);
  options.only = std::string(obligation_of(k.op, by).info->id);
  options.shrink = shrink;
  const json report =
      make_report({to_json(operation(k.op), run_campaign(operation(k.op), k, options))}, json::object(), 1);
  text = table(report);
  return report["kernels"][0]["obligations"][0].value("counterexample", json());
}

/// Lengths, starts, ids and targets are part of the call and reported with any values.
TEST(Integers, AreToldOfEveryOperationThatTakesThem) {
  int told = 0;
  for (const OpDescriptor* const each : operations())
    for (const TensorInfo& tensor : each->tensors) {
      const OpDescriptor& op = *each;
      if (tensor.role != Role::in || tensor.dtype != DType::i32) continue;
      const Kernel k = corrupted_kernel(op.name);
      std::string text;
      const json x = counterexample_of(k, "differential", false, text);
      const json integers = x.value(json::json_pointer("/finding/integers"), json::object());
      ASSERT_TRUE(integers.contains(tensor.name)) << op.name << ": " << text;
      const json& list = integers[tensor.name]["values"];
      const Case drawn = case_from_json(op, x["case"], "");
      const Problem problem = make_problem(op, drawn, k.arithmetic, k.storage);
      const std::vector<float>& values = problem.values[static_cast<std::size_t>(&tensor - op.tensors.data())];
      EXPECT_EQ(integers[tensor.name]["count"], values.size());
      ASSERT_EQ(list.size(), std::min<std::size_t>(values.size(), 12)) << op.name;
      for (std::size_t i = 0; i < list.size(); ++i) EXPECT_EQ(list[i], values[i]) << op.name << " " << tensor.name;
      EXPECT_NE(text.find(std::string(tensor.name) + " = ["), std::string::npos) << text;
      EXPECT_EQ(text.find(", ...]") != std::string::npos, text.find("...") != std::string::npos) << text;
      ++told;
    }
  EXPECT_GE(told, 8);
}

/// A shim with `lengths == s` overrides the drawn lengths of each call.
TEST(Integers, AreThoseThatTheKernelFixes) {
  Kernel k = corrupted_kernel("mean_pool");
  Limits limits;
  const auto& tensors = operation("mean_pool").tensors;
  const auto lengths = static_cast<int>(std::ranges::find(tensors, "lengths", &TensorInfo::name) - tensors.begin());
  limits.fixed.push_back({.tensor = lengths, .value = [](auto dims, auto) { return static_cast<double>(dims[1]); }});
  k.limits = &limits;
  for (const bool shrink : {false, true}) {
    std::string text;
    const json x = counterexample_of(k, "differential", shrink, text);
    ASSERT_TRUE(x.contains("finding")) << text;
    const json list = x.value(json::json_pointer("/finding/integers/lengths/values"), json::array());
    EXPECT_FALSE(list.empty()) << text;
    for (const json& length : list) EXPECT_EQ(length, x["case"]["dims"]["s"]) << text;
  }
}

/// The finding is in the second call, whose other dims give it another number of lengths.
TEST(Integers, AreThoseOfTheCallThatFailed) {
  std::string text;
  const json x = counterexample_of(wrong_at_other_dims<kMeanPool>(), "determinism", false, text);
  ASSERT_TRUE(x.contains("finding") && x["finding"].contains("call")) << text;
  EXPECT_NE(x["finding"]["call"]["case"]["dims"]["b"], x["case"]["dims"]["b"]);
  EXPECT_EQ(x["finding"].value(json::json_pointer("/integers/lengths/count"), -1),
            x["finding"]["call"]["case"]["dims"]["b"])
      << text;
}

/// A resumed campaign reports the same as an uninterrupted one.
TEST(Integers, SurviveACheckpoint) {
  const OpDescriptor& op = operation("mean_pool");
  CampaignOptions options = quick(1);
  options.shrink = false;
  Checkpoint c{.rounds = 1,
               .after = 0,
               .total = 1,
               .hangs = 0,
               .so_far = run_campaign(op, corrupted_kernel("mean_pool"), options),
               .ratios = {}};
  c.ratios.resize(c.so_far.obligations.size());
  const auto of = [&](const Checkpoint& x) { return x.so_far.explanation()->counterexample->finding.integers.at(0); };
  const Checkpoint back = checkpoint_from_json(op, options, to_json(op, c), "here");
  EXPECT_EQ(of(back).tensor, "lengths");
  EXPECT_EQ(of(back).count, of(c).count);
  EXPECT_EQ(of(back).values, of(c).values);
}

/// A wrong formula fails at every size: the check of large sizes does not explain it.
TEST(Explanation, OfWhatFailsAtAnySizeIsNotTheLargeOne) {
  EXPECT_EQ(explained_by(corrupted_everywhere<kLora>([](const Call&, float x) { return x + 1; })), "differential");
}

/// All elements are written but wrong: the headline must not state the claim that they are written.
TEST(Explanation, OfAWrongValueDoesNotSayThatItWasNotWritten) {
  CampaignOptions options = quick(5);
  options.stop_at_first = true;
  const Kernel k = corrupted_everywhere<kRmsnorm>([](const Call&, float x) { return x * 1.001F; });
  const json report =
      make_report({to_json(operation("rmsnorm"), run_campaign(operation("rmsnorm"), k, options))}, json::object(), 1);
  ASSERT_EQ(report["kernels"][0]["obligations"][0]["by"], "frame");
  ASSERT_EQ(report["kernels"][0]["obligations"][0]["verdict"], "falsified");
  EXPECT_EQ(table(report).find("is written"), std::string::npos) << table(report);
  EXPECT_EQ(annotations(report).find("is written"), std::string::npos) << annotations(report);
}

/// Obligations after the first failure are `not run`, not inapplicable, and their clauses are not reported as never
/// evaluated.
TEST(Explanation, ThatEndsTheCampaignLeavesTheOthersNotRun) {
  CampaignOptions options = quick(5);
  options.stop_at_first = true;
  const json report =
      make_report({to_json(operation("matmul"),
                           run_campaign(operation("matmul"), kernel("mutant/cpu/matmul/dropped_last_k"), options))},
                  json::object(), 1);
  const json& obligations = report["kernels"][0]["obligations"];
  EXPECT_EQ(obligations[0]["verdict"], "falsified");
  for (std::size_t o = 1; o < obligations.size(); ++o)
    EXPECT_EQ(obligations[o]["verdict"], "not run") << obligations[o].dump();
  EXPECT_TRUE(report["never_evaluated"].empty()) << report["never_evaluated"].dump();
  EXPECT_NE(table(report).find(std::to_string(obligations.size() - 1) + " of " + std::to_string(obligations.size()) +
                               " obligations not run"),
            std::string::npos)
      << table(report);
}

/// The two thread orders give different results in two processes; other faults are not reported as races.
TEST(Race, IsSaidOfAMissingBarrier) {
  for (const char* id : {"mutant/cuda-host/softmax/no_barrier", "mutant/cuda-host/gemv/no_barrier",
                         "mutant/cuda-host/transpose/no_barrier", "mutant/cuda-host/matmul/no_barrier_after_use"}) {
    const KernelResult result = of_mutant(id);
    const ObligationResult* const best = result.explanation();
    ASSERT_NE(best, nullptr) << id;
    const Counterexample& x = *best->counterexample;
    ASSERT_TRUE(x.race.has_value()) << id << ": " << x.finding.message;
    EXPECT_NE(x.race->order, x.race->other) << id;
    EXPECT_EQ(x.smallest.order, x.race->order) << id;
    const OpDescriptor& op = operation(kernel(id).op);
    const Obligation& obligation =
        *std::ranges::find_if(obligations(op.name), [&](const Obligation& o) { return o.info == best->info; });
    Case other = x.smallest;
    other.order = x.race->other;
    const Outcome one = run_case(op, obligation, kernel(id), x.smallest, std::chrono::seconds(10));
    const Outcome two = run_case(op, obligation, kernel(id), other, std::chrono::seconds(10));
    ASSERT_TRUE(one.finding.has_value()) << id;
    EXPECT_TRUE(!two.finding || two.finding->outputs != one.finding->outputs) << id;
    const auto report = make_report({to_json(op, result)}, nlohmann::json::object(), 1);
    EXPECT_NE(table(report).find("  race     "), std::string::npos) << table(report);
  }
  for (const char* id : {"mutant/cuda-host/softmax/not_rescaled", "mutant/cuda-host/softmax/first_row_only"}) {
    const KernelResult result = of_mutant(id);
    ASSERT_NE(result.explanation(), nullptr) << id;
    EXPECT_FALSE(result.explanation()->counterexample->race.has_value()) << id;
  }
}

/// The CPU back end has no drawn thread order: two runs of one call that differ are a race, and a repeatable fault is
/// none.
TEST(Race, IsSaidOfACallThatGivesOtherResultsInAnotherRun) {
  const Kernel k = corrupted<kScale>([](const Call& call) {
    if (float* const y = last_of("scale", call))
      *y += static_cast<float>(1 + std::chrono::steady_clock::now().time_since_epoch().count() % 100'003);
  });
  const KernelResult result = run_campaign(operation("scale"), k, quick(20));
  const ObligationResult* const best = result.explanation();
  ASSERT_NE(best, nullptr);
  const Counterexample& x = *best->counterexample;
  ASSERT_TRUE(x.race.has_value()) << x.finding.message;
  EXPECT_EQ(x.race->order, x.race->other);
  const std::string text = table(make_report({to_json(operation("scale"), result)}, nlohmann::json::object(), 1));
  EXPECT_NE(text.find("  race     the same call gives other results in another run ("), std::string::npos) << text;
  EXPECT_NE(text.find("  suspect  threads that share memory without a lock"), std::string::npos) << text;
  const KernelResult steady = run_campaign(operation("scale"), corrupted<kScale>([](const Call& call) {
                                             if (float* const y = last_of("scale", call)) *y = kFar;
                                           }),
                                           quick(20));
  ASSERT_NE(steady.explanation(), nullptr);
  EXPECT_FALSE(steady.explanation()->counterexample->race.has_value());
}

}  // namespace
}  // namespace assay::falsify::explanation_test
