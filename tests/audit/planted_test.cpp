// The audit reports each kernel that deviates from its declaration, and no kernel that agrees with it.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <cmath>
#include <random>

#include "core/errors.hpp"
#include "falsify/audit/audit.hpp"
#include "falsify/audit/confirm.hpp"
#include "falsify/audit/judge.hpp"
#include "falsify/audit/subject.hpp"
#include "falsify/engine/campaign.hpp"
#include "tests/audit/rounding.hpp"
#include "ops/matmul.hpp"
#include "ops/rmsnorm.hpp"
#include "ops/softmax.hpp"
#include "runtime/limits.hpp"

namespace assay::falsify::audit {
namespace {

using nlohmann::json;
using planted::rounded, planted::truncated;

float plain(float x) { return x; }
float bf16(float x) { return rounded(x, 8); }
float tf32(float x) { return rounded(x, 11); }
float tf32_cut(float x) { return truncated(x, 11); }
float five_bits(float x) { return rounded(x, 5); }
float flushed(float x) { return std::fabs(x) < 0x1p-126F ? 0.0F : x; }

float nearest(float x, float y) { return x + y; }
float toward_zero(float x, float y) {
  const double exact = static_cast<double>(x) + y;  // exact for numbers with close exponents, as in the audit
  const auto near = static_cast<float>(exact);
  return std::fabs(near) > std::fabs(exact) ? std::nextafter(near, 0.0F) : near;
}

/// Rounds inputs by In and sums by Acc, and adds in order by Add; fused if kFused.
template <float (*In)(float), float (*Acc)(float), float (*Add)(float, float), bool kFused = false>
void product(const Call& call, Device&) {
  const auto args = ops::MatmulArgs::unpack(call);
  const auto a = args.a.as<const float>(), b = args.b.as<const float>();
  const auto c = args.c.as<float>();
  for (Index i = 0; i < args.m; ++i)
    for (Index j = 0; j < args.n; ++j) {
      float sum = 0;
      for (Index p = 0; p < args.k; ++p) {
        const float x = In(a(i, p)), y = In(b(p, j));
        sum = Acc(kFused ? std::fma(x, y, sum) : Add(sum, Acc(x * y)));
      }
      c(i, j) = sum;
    }
}

/// Sums even terms, then odd ones.
void two_lanes(const Call& call, Device&) {
  const auto args = ops::MatmulArgs::unpack(call);
  const auto a = args.a.as<const float>(), b = args.b.as<const float>();
  const auto c = args.c.as<float>();
  for (Index i = 0; i < args.m; ++i)
    for (Index j = 0; j < args.n; ++j) {
      float sum[2] = {0, 0};
      for (Index p = 0; p < args.k; ++p) sum[p % 2] += a(i, p) * b(p, j);
      c(i, j) = sum[0] + sum[1];
    }
}

/// A tensor core: aligns eight products and the running sum to the largest exponent and truncates them.
void blocks_of_eight(const Call& call, Device&) {
  const auto args = ops::MatmulArgs::unpack(call);
  const auto a = args.a.as<const float>(), b = args.b.as<const float>();
  const auto c = args.c.as<float>();
  for (Index i = 0; i < args.m; ++i)
    for (Index j = 0; j < args.n; ++j) {
      float sum = 0;
      for (Index p = 0; p < args.k; p += 8) {
        double terms[9] = {sum};
        int top = std::ilogb(sum == 0 ? 0x1p-126F : sum), count = 1;
        for (Index q = p; q < std::min(p + 8, args.k); ++q) {
          terms[count] = static_cast<double>(a(i, q)) * b(q, j);
          if (terms[count] != 0) top = std::max(top, std::ilogb(terms[count]));
          ++count;
        }
        const double last = std::ldexp(1.0, top - 23);
        double exact = 0;
        for (int t = 0; t < count; ++t) exact += std::trunc(terms[t] / last) * last;
        sum = toward_zero(0, static_cast<float>(std::trunc(exact / last) * last));
      }
      c(i, j) = sum;
    }
}

/// Uses another order in every call.
void shuffled(const Call& call, Device&) {
  static std::mt19937 random(std::random_device{}());
  const auto args = ops::MatmulArgs::unpack(call);
  const auto a = args.a.as<const float>(), b = args.b.as<const float>();
  const auto c = args.c.as<float>();
  const Index start = static_cast<Index>(random() % 64);
  for (Index i = 0; i < args.m; ++i)
    for (Index j = 0; j < args.n; ++j) {
      float sum = 0;
      for (Index p = 0; p < args.k; ++p) sum += a(i, (p + start) % args.k) * b((p + start) % args.k, j);
      c(i, j) = sum;
    }
}

/// Sums a product of a single row from the last term.
void order_of_the_rows(const Call& call, Device&) {
  const auto args = ops::MatmulArgs::unpack(call);
  const auto a = args.a.as<const float>(), b = args.b.as<const float>();
  const auto c = args.c.as<float>();
  for (Index i = 0; i < args.m; ++i)
    for (Index j = 0; j < args.n; ++j) {
      float sum = 0;
      for (Index p = 0; p < args.k; ++p) {
        const Index at = args.m == 1 ? args.k - 1 - p : p;
        sum += a(i, at) * b(at, j);
      }
      c(i, j) = sum;
    }
}

/// Sums one row from the first element, several rows from the last.
void order_of_the_batch(const Call& call, Device&) {
  const auto args = ops::RmsnormArgs::unpack(call);
  const auto x = args.x.as<const float>();
  for (Index i = 0; i < args.rows; ++i) {
    float squares = 0;
    for (Index j = 0; j < args.n; ++j) {
      const float v = x(i, args.rows == 1 ? j : args.n - 1 - j);
      squares += v * v;
    }
    args.rrms(i) = 1 / std::sqrt(squares / static_cast<float>(args.n) + static_cast<float>(args.eps));
    for (Index j = 0; j < args.n; ++j) args.y.as<float>()(i, j) = x(i, j) * args.rrms(i) * args.weight(j);
  }
}

/// Sums squares in double and does not write rrms.
void summed_in_double(const Call& call, Device&) {
  const auto args = ops::RmsnormArgs::unpack(call);
  const auto x = args.x.as<const float>();
  for (Index i = 0; i < args.rows; ++i) {
    double squares = 0;
    for (Index j = 0; j < args.n; ++j) squares += static_cast<double>(x(i, j)) * x(i, j);
    const auto rrms = static_cast<float>(1 / std::sqrt(squares / static_cast<double>(args.n) + args.eps));
    for (Index j = 0; j < args.n; ++j) args.y.as<float>()(i, j) = x(i, j) * rrms * args.weight(j);
  }
}

Kernel with(void (*run)(const Call&, Device&), std::string_view like = "matmul/cpu/naive") {
  Kernel k = kernel(like);
  k.run = run;
  k.arithmetic = {};
  return k;
}

json audited(const Kernel& k) { return audit(operation(k.op), k, std::chrono::seconds(60)); }

bool tells(const json& report, std::string_view property) {
  return std::ranges::any_of(report["disagreements"], [&](const json& d) { return d["property"] == property; });
}

TEST(Audit, ARightKernelAgrees) {
  const json report = audited(with(&product<plain, plain, nearest>));
  EXPECT_EQ(report["verdict"], "agrees") << report.dump(1);
  const json& sum = report["sums"][0];
  EXPECT_EQ(sum["order"]["value"], "sequential");
  EXPECT_EQ(sum["order"]["depth"], 63);
  EXPECT_EQ(sum["accumulator_bits"]["value"], 24);
  EXPECT_EQ(sum["input_bits"]["value"], 24);
  EXPECT_EQ(sum["rounding"]["value"], "to nearest even");
  EXPECT_EQ(sum["fma"]["value"], false);
  for (const auto& [what, flushes] : sum["flushes"].items()) EXPECT_EQ(flushes["value"], false) << what;
  EXPECT_EQ(report["batch_invariant"]["value"], true);
  EXPECT_EQ(report["deterministic"]["value"], true);
}

TEST(Audit, MoreBitsThanDeclaredAreNoDisagreement) {
  const Kernel k = with(&product<plain, plain, nearest>);
  Measured measured;
  measured.rounding.value = SeenRounding::away;  // a sum in double, whose result shows each change
  Sum sum{};
  sum.count = 64;
  sum.terms = Terms::exponentials;
  EXPECT_TRUE(compare(k, sum, measured).empty());
  sum.terms = Terms::products;
  EXPECT_FALSE(compare(k, sum, measured).empty());
}

TEST(Audit, AnOutputThatIsAbsentIsNotMeasured) {
  Kernel k = with(&summed_in_double, "rmsnorm/cpu/naive");
  Limits limits;
  const auto& tensors = operation("rmsnorm").tensors;
  limits.absent = {static_cast<int>(std::ranges::find(tensors, "rrms", &TensorInfo::name) - tensors.begin())};
  k.limits = &limits;
  const json report = audited(k);
  EXPECT_EQ(report["disagreements"], json::array()) << report.dump(1);
  EXPECT_NE(report["refused"].dump().find("the kernel does not give rrms"), std::string::npos);
}

/// The audit measures a sum at the only extent that a kernel takes, and finds the declared arithmetic. Tries all dims
/// of operations with up to two dims, and a third of the dims of others.
TEST(Audit, SumsAreMeasuredAtDimsThatTheKernelTakes) {
  constexpr Index kTaken = 32;
  std::size_t turn = 0;
  std::vector<std::string> left_out;
  for (const OpDescriptor* op : operations()) {
    const std::vector<const Kernel*> kernels = kernels_of(op->name);
    const auto naive = std::ranges::find_if(
        kernels, [](const Kernel* k) { return k->backend == Backend::cpu && k->id.ends_with("/naive"); });
    ASSERT_NE(naive, kernels.end()) << op->name;
    const std::size_t sums = subject(op->name).sums.size();
    for (std::size_t d = 0; d < op->dims.size(); ++d) {
      if (sums == 0 || op->dims[d].max < kTaken || op->dims[d].multiple_of >= 0 || kTaken % op->dims[d].multiple != 0 ||
          (op->dims.size() > 2 && turn++ % 3 != 0))
        continue;
      Limits limits;
      limits.refuse = [&](auto dims, auto) {
        return dims[d] == kTaken ? std::nullopt : std::optional<std::string>("takes one extent");
      };
      limits.repair = [&](std::vector<Index>& dims, auto&, auto) {
        dims[d] = kTaken;
        make_valid(*op, dims);
        return dims[d] == kTaken;
      };
      Kernel k = **naive;
      k.limits = &limits;
      const json report = audited(k);
      EXPECT_EQ(report["disagreements"], json::array())
          << op->name << ", " << op->dims[d].name << ": " << report.dump(1);
      for (const json& sum : report["sums"]) EXPECT_EQ(sum["dims"][d], kTaken) << op->name;
      if (report["sums"].size() < sums) left_out.push_back(fmt::format("{}, {}", op->name, op->dims[d].name));
    }
  }
  // The mean of a whole matrix runs along no axis, and a pair's two products are no whole axis.
  EXPECT_EQ(left_out,
            (std::vector<std::string>{"nf4_absmax_quantize, n", "nf4_absmax_quantize, b", "rope_table_backward, d"}));
}

/// The audit also reports an undeclared order there.
TEST(Audit, OrdersAreToldAtDimsThatTheKernelTakes) {
  Limits limits;
  limits.refuse = [](auto dims, auto) {
    return dims[1] == 128 ? std::nullopt : std::optional<std::string>("takes k = 128");
  };
  limits.repair = [](std::vector<Index>& dims, auto&, auto) { return dims[1] = 128, true; };
  Kernel cores = with(&blocks_of_eight);
  cores.limits = &limits;
  const json report = audited(cores);
  EXPECT_TRUE(tells(report, "block")) << report.dump(1);
  EXPECT_EQ(report["sums"][0]["terms"], 128);
}

TEST(Audit, OrdersAreTold) {
  EXPECT_EQ(audited(with(&two_lanes))["sums"][0]["order"]["value"],
            "2 interleaved sums of 32, sequential, added pairwise");
  Kernel cores = with(&blocks_of_eight);
  EXPECT_TRUE(tells(audited(cores), "block"));
  EXPECT_TRUE(tells(audited(cores), "rounding"));
  cores.arithmetic.block = 8;
  const json report = audited(cores);
  EXPECT_EQ(report["verdict"], "agrees") << report.dump(1);
  EXPECT_EQ(report["sums"][0]["order"]["value"], "sequential, 9 at once");
  EXPECT_EQ(report["statistical_tier"]["used"], false);
}

TEST(Audit, AnAccumulatorOfFewerBits) {
  Kernel k = with(&product<plain, bf16, nearest>);
  EXPECT_TRUE(tells(audited(k), "accumulator"));
  k.arithmetic.accumulator = Format::bf16;
  const json report = audited(k);
  EXPECT_EQ(report["sums"][0]["accumulator_bits"]["value"], 8);
  EXPECT_EQ(report["verdict"], "agrees") << report.dump(1);
  Kernel wide = with(&product<plain, plain, nearest>);
  wide.arithmetic.accumulator = Format::bf16;
  EXPECT_TRUE(tells(audited(wide), "accumulator")) << "bounds are wider than they need be";
}

/// A softmax of bfloat16 whose sum of exponentials is rounded by Acc.
template <float (*Acc)(float)>
void softmax_bf16(const Call& call, Device&) {
  const auto args = ops::SoftmaxArgs::unpack(call);
  const auto x = args.x.as<const BFloat16>();
  const auto y = args.y.as<BFloat16>();
  for (Index i = 0; i < x.dim(0); ++i) {
    float largest = -INFINITY, sum = 0;
    for (Index j = 0; j < x.dim(1); ++j) largest = std::max(largest, widen(x(i, j)));
    for (Index j = 0; j < x.dim(1); ++j) sum = Acc(sum + std::exp(widen(x(i, j)) - largest));
    for (Index j = 0; j < x.dim(1); ++j) y(i, j) = to_bfloat16(std::exp(widen(x(i, j)) - largest) / sum);
  }
}

/// A result of 8 bits hides an accumulator of 24, and shows one of 5.
TEST(Audit, AnAccumulatorBehindAResultOf16Bits) {
  const json right = audited(with(&softmax_bf16<plain>, "softmax/cpu/naive_bf16"));
  EXPECT_EQ(right["verdict"], "agrees") << right.dump(1);
  EXPECT_TRUE(tells(audited(with(&softmax_bf16<five_bits>, "softmax/cpu/naive_bf16")), "accumulator"));
}

TEST(Audit, AccumulationTowardZero) {
  Kernel k = with(&product<plain, plain, toward_zero>);
  const json report = audited(k);
  EXPECT_TRUE(tells(report, "rounding")) << report.dump(1);
  EXPECT_EQ(report["sums"][0]["order"]["value"], "sequential");
  EXPECT_EQ(report["statistical_tier"], (json{{"used", true}, {"justified", false}}));
  k.arithmetic.accumulation = Rounding::toward_zero;
  EXPECT_EQ(audited(k)["verdict"], "agrees");
  EXPECT_EQ(audited(k)["statistical_tier"]["used"], false);
  Kernel near = with(&product<plain, plain, nearest>);
  near.arithmetic.accumulation = Rounding::toward_zero;
  EXPECT_TRUE(tells(audited(near), "rounding")) << "the statistical bound is withheld where it is justified";
}

TEST(Audit, NarrowInputs) {
  for (auto* run : {&product<tf32, plain, nearest>, &product<tf32_cut, plain, nearest>, &product<bf16, plain, nearest>})
    EXPECT_TRUE(tells(audited(with(run)), "inputs"));
  Kernel k = with(&product<tf32, plain, nearest>);
  k.arithmetic.inputs = Format::tf32;
  EXPECT_EQ(audited(k)["verdict"], "agrees");
  k.arithmetic.input_rounding = Rounding::toward_zero;
  EXPECT_TRUE(tells(audited(k), "input_rounding"));
  Kernel cut = with(&product<tf32_cut, plain, nearest>);
  cut.arithmetic.inputs = Format::tf32;
  EXPECT_TRUE(tells(audited(cut), "input_rounding"));
}

TEST(Audit, FlushedSubnormals) {
  Kernel inputs = with(&product<flushed, plain, nearest>), sums = with(&product<plain, flushed, nearest>);
  for (Kernel* k : {&inputs, &sums}) {
    EXPECT_TRUE(tells(audited(*k), "subnormals"));
    k->arithmetic.flushes_subnormals = true;
    EXPECT_EQ(audited(*k)["verdict"], "agrees");
  }
  Kernel keeps = with(&product<plain, plain, nearest>);
  keeps.arithmetic.flushes_subnormals = true;  // permitted, not required
  EXPECT_EQ(audited(keeps)["verdict"], "agrees");
}

TEST(Audit, FusedProducts) {
  Kernel k = with(&product<plain, plain, nearest, true>);
  EXPECT_EQ(audited(k)["sums"][0]["fma"]["value"], true);
  EXPECT_EQ(audited(k)["verdict"], "agrees") << "allowed by default";
  k.arithmetic.fuses_products = false;
  EXPECT_TRUE(tells(audited(k), "fma"));
}

TEST(Audit, AnotherOrderInABatch) {
  const json report = audited(with(&order_of_the_batch, "rmsnorm/cpu/naive"));
  EXPECT_EQ(report["batch_invariant"]["value"], false);
  EXPECT_TRUE(tells(report, "batch_invariance")) << report.dump(1);
}

TEST(Audit, ABatchThatIsDeclaredToMatter) {
  Kernel k = with(&order_of_the_rows);
  EXPECT_TRUE(tells(audited(k), "batch_invariance"));
  k.batch_invariant = false;
  EXPECT_FALSE(tells(audited(k), "batch_invariance"));
  Kernel pinned = with(&order_of_the_batch, "rmsnorm/cpu/naive");
  pinned.batch_invariant = false;
  EXPECT_TRUE(tells(audited(pinned), "batch_invariance"));
}

TEST(Audit, AnotherOrderInEveryRun) {
  Kernel k = with(&shuffled);
  const json report = audited(k);
  EXPECT_TRUE(tells(report, "determinism")) << report.dump(1);
  EXPECT_TRUE(report["sums"][0]["order"].contains("not_applicable"));
  k.deterministic = false;
  EXPECT_FALSE(tells(audited(k), "determinism"));
}

TEST(Audit, ACrashIsNoAgreement) {
  EXPECT_EQ(audited(with([](const Call&, Device&) { std::abort(); }))["verdict"], "failed");
  Kernel k = with(&two_lanes);
  k.refuse = [](const Call&) { return std::optional<std::string>("not today"); };
  EXPECT_EQ(audited(k)["verdict"], "refused");
}

/// Every operation describes its probes, with valid places, or gives the reason for having none.
TEST(Audit, EveryOperationHasASubject) {
  for (const OpDescriptor* op : operations()) {
    const Subject s = subject(op->name);
    EXPECT_NE(s.sums.empty(), s.no_sums.empty()) << op->name;
    EXPECT_NE(s.no_sums, audit::kNotSaid) << op->name;
    for (const Sum& sum : s.sums) EXPECT_EQ(sum.dims.size(), op->dims.size()) << op->name << ": " << sum.says;
  }
}

/// The campaign checks the rounding itself, so that the statistical bound is used only where it is valid.
TEST(Audit, CampaignsConfirmWhatTheStatisticalBoundRestsOn) {
  const OpDescriptor& op = operation("matmul");
  CampaignOptions options;
  options.cases = 5;
  options.only = "FALSIFY-MM-004";
  options.shrink = false;
  Kernel k = with(&product<plain, plain, toward_zero>);
  const KernelResult wrong = run_campaign(op, k, options);
  ASSERT_TRUE(wrong.falsified());
  EXPECT_EQ(name(wrong.obligations[0].counterexample->finding.kind), "rounding");
  EXPECT_TRUE(run_campaign(op, with(&product<plain, plain, nearest>), options).clean());
  k.arithmetic.accumulation = Rounding::toward_zero;
  EXPECT_EQ(run_campaign(op, k, options).obligations[0].verdict, Verdict::not_applicable);
}

}  // namespace
}  // namespace assay::falsify::audit
