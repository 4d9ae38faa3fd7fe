#include "falsify/engine/admit.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "falsify/engine/campaign.hpp"
#include "falsify/engine/draw.hpp"
#include "falsify/engine/obligation.hpp"
#include "falsify/engine/trial.hpp"
#include "plugin/shim.hpp"
#include "tests/sample.hpp"

namespace assay::falsify::admit_test {
namespace {

/// A kernel with the limits of a shim.
struct Restricted {
  Restricted(const char* op, const std::string& conditions, const std::string& args) : descriptor(operation(op)) {
    const plugin::Shim shim =
        plugin::Shim::read(descriptor, "args: " + args + "\nrequires: " + conditions + "\n", "shim.yaml");
    limits = shim.limits();
    kernel.op = op, kernel.id = "some/cpu/restricted", kernel.limits = &limits;
  }
  const OpDescriptor& descriptor;
  Limits limits;
  Kernel kernel;
};

constexpr const char* kAttention =
    "[q, k, v, lengths, starts, y, logsumexp, batch, s, t, kv_heads, heads, d, scale, causal]";

TEST(Admit, EveryDrawnCaseIsOneThatTheKernelTakes) {
  const Restricted of[] = {
      {"matmul", "[k % 8 == 0, m >= n, dense rows]", "[a, b, c, m, k, n]"},
      {"matmul", "[m == n, n == k, no empty tensors, aligned to 32 bytes]", "[a, b, c, m, k, n]"},
      {"attention",
       "[d in [64, 128], causal == 1, s == t, heads == kv_heads, scale == 1 / sqrt(d), lengths == t, starts == 0]",
       kAttention},
      {"attention", "[d in (80; 96), heads / kv_heads == 4 and kv_heads > 1, not (s > 17 or t < s)]", kAttention},
      {"attention", "[lengths == 128, causal == 0]", kAttention},
      {"attention", "[lengths == 2, starts == -1]", kAttention},
      {"attention", "[lengths == t - 3]", kAttention},
      {"embedding", "ids == 40000", "[ids, table, y, t, v, h]"},
      {"gemv", "k in [256, 512, 1024]", "[a, x, y, m, k]"},
      {"softmax", "[n <= 64]", "[x, y, rows, n]"},
      {"scale", "[alpha == 1]", "[x, y, m, n, alpha]"}};
  for (const Restricted& r : of) {
    std::map<std::size_t, std::set<Index>> extents;
    for (const Obligation& o : obligations(r.descriptor.name)) {
      for (std::uint64_t n = 0; n < 40; ++n) {
        const Case drawn = draw(r.descriptor, *o.info, 1, n).value(), c = admitted(r.descriptor, r.kernel, drawn);
        ASSERT_EQ(r.limits.refuse ? r.limits.refuse(c.dims, c.params) : std::nullopt, std::nullopt)
            << describe(r.descriptor, c);
        if (n < 2) {
          ASSERT_EQ(outside(r.kernel, restrict_integers(r.descriptor, r.kernel, make_problem(r.descriptor, c, {}))),
                    std::nullopt)
              << describe(r.descriptor, c);
        }
        EXPECT_TRUE(valid(r.descriptor, c.dims)) << describe(r.descriptor, c);
        EXPECT_EQ(admitted(r.descriptor, r.kernel, drawn), c);
        EXPECT_EQ(admitted(r.descriptor, r.kernel, c).dims, c.dims) << "what it takes stays";
        const bool padded = c.layout == Layout::padded || c.layout == Layout::mixed || c.layout == Layout::far_rows;
        const bool offset = c.layout == Layout::offset || c.layout == Layout::mixed;
        if (c.region >= 0) {
          EXPECT_TRUE(is_joint(r.descriptor, c.dims)) << describe(r.descriptor, c);
        }
        EXPECT_FALSE((r.limits.dense && padded) ||
                     (r.limits.aligned && (offset || c.placement == Placement::page_end)));
        for (std::size_t d = 0; d < c.dims.size(); ++d) extents[d].insert(c.dims[d]);
      }
    }
    for (const auto& [d, seen] : extents)
      EXPECT_GE(seen.size(), 2u) << r.descriptor.name << " draws one extent of dim " << d;
  }
}

TEST(Admit, IntegersThatTheContractForbidsAreNotWritten) {
  const Restricted r("attention", "lengths == 128", kAttention);
  Case c;
  c.dims = {2, 3, 5, 1, 1, 4}, c.params = {0.125, 0};
  const Problem kept = restrict_integers(r.descriptor, r.kernel, make_problem(r.descriptor, c, {}));
  for (const float length : kept.values[3]) EXPECT_LE(length, 5);
  const std::optional<std::string> why = outside(r.kernel, kept);
  ASSERT_TRUE(why.has_value());
  EXPECT_NE(why->find("lengths == 128"), std::string::npos) << *why;
}

TEST(Admit, ListedValuesAreDrawnAlikeAndLimitsKeepSmallExtents) {
  const Restricted listed("attention", "d in [64, 80, 128]", kAttention),
      limited("softmax", "n <= 64", "[x, y, rows, n]");
  std::map<Index, int> of_d, of_n;
  for (std::uint64_t n = 0; n < 600; ++n) {
    ++of_d[admitted(listed.descriptor, listed.kernel,
                    draw(listed.descriptor, listed.descriptor.obligations[1], 1, n).value())
               .dims[5]];
    ++of_n[admitted(limited.descriptor, limited.kernel,
                    draw(limited.descriptor, limited.descriptor.obligations[1], 1, n).value())
               .dims[1]];
  }
  for (const Index d : {64, 80, 128}) EXPECT_GE(of_d[d], 120) << d;
  EXPECT_GE(of_n.size(), 20u);
  EXPECT_LE(of_n[64], 300) << "most cases stand at the limit itself";
}

TEST(Admit, WhatACaseShrinksToIsTakenToo) {
  const Restricted r("matmul", "[k % 8 == 0, m == n]", "[a, b, c, m, k, n]");
  const auto drawn = admitted(r.descriptor, r.kernel, draw(r.descriptor, r.descriptor.obligations[1], 3, 5));
  auto shrinks = drawn.shrinks();
  int seen = 0;
  for (auto next = shrinks.next(); next; next = shrinks.next(), ++seen) {
    EXPECT_EQ(next->value().dims[1] % 8, 0);
    EXPECT_EQ(next->value().dims[0], next->value().dims[2]);
  }
  EXPECT_GT(seen, 3);
}

TEST(Admit, DimsThatAreGivenStay) {
  const Restricted r("matmul", "[m == n, k % 8 == 0]", "[a, b, c, m, k, n]");
  for (std::uint64_t n = 0; n < 40; ++n) {
    const std::vector<Index> of_one{48, kDrawnSmall, kDrawnSmall}, of_none_it_takes{48, 12, kDrawnSmall};
    const auto case_of = [&](const std::vector<Index>& dims) {
      return admitted(r.descriptor, r.kernel,
                      draw(r.descriptor, r.descriptor.obligations[1], 1, n, {.dims = dims}).value(), dims);
    };
    EXPECT_EQ(case_of(of_one).dims[0], 48);
    EXPECT_EQ(case_of(of_none_it_takes).dims[1], 12) << "it is refused";
  }
}

/// A campaign never shows what a kernel does with dims that its limits leave out.
TEST(Admit, KernelsRefuseTheDimsThatAreNeverDrawnForThem) {
  alignas(64) static std::byte somewhere[64];
  for (const Kernel& kernel : kernels()) {
    if (kernel.role != KernelRole::kernel || kernel.limits == nullptr || !kernel.limits->refuse) continue;
    const OpDescriptor& op = operation(kernel.op);
    Random random(1);
    std::size_t left_out = 0;
    for (int n = 0; n < 1000; ++n) {
      Call call;
      for (const DimInfo& dim : op.dims)
        call.dims.push_back(random.chance(0.5) ? std::max<Index>(dim.min, 1) : random.between(dim.min, 40));
      make_valid(op, call.dims);
      for (const ParamInfo& p : op.params) call.params.push_back(p.choices.empty() ? p.typical : p.choices.front());
      const auto why = kernel.limits->refuse(call.dims, call.params);
      if (!why) continue;
      ++left_out;
      for (const TensorInfo& info : op.tensors) {
        const Shape shape = info.shape(call.dims);
        call.tensors.push_back(
            {info.storage ? kernel.storage : info.dtype, somewhere, shape, row_major_strides(shape)});
      }
      ASSERT_TRUE(kernel.refuse && kernel.refuse(call))
          << kernel.id << " takes " << fmt::format("{}", fmt::join(call.dims, ", ")) << ", but " << *why;
    }
    EXPECT_GT(left_out, 0u) << kernel.id;
  }
}

TEST(Admit, ConditionsThatNothingSatisfiesAreAnError) {
  for (const char* conditions : {"[k == 1, k == 2]", "k > 1048576", "m % 0 == 1", "k * k == 2"})
    EXPECT_THROW(Restricted("matmul", conditions, "[a, b, c, m, k, n]"), InputError) << conditions;
}

/// No obligation may need calls that a shim excludes: restricts one dim at a time, and integer tensors to one value.
TEST(Admit, NoObligationFalsifiesARightKernelWithinItsLimits) {
  constexpr const char* kOfDim[] = {"{} % 256 == 0", "{} == 1", "{} == 16", "{} % 6 == 0", "{} in [0, 512]"};
  CampaignOptions options;
  options.cases = 4;
  options.shrink = false;
  std::size_t turn = 0, tried = 0;
  for (const OpDescriptor* op : operations()) {
    std::vector<std::string> conditions;
    for (const DimInfo& dim : op->dims)
      conditions.push_back(fmt::format(fmt::runtime(kOfDim[turn++ % std::size(kOfDim)]), dim.name));
    std::string args;
    for (const TensorInfo& t : op->tensors) {
      args += fmt::format("{}, ", t.name);
      if (t.dtype != DType::i32) continue;
      conditions.push_back(fmt::format("{} == {}", t.name, turn++ % 2));
      for (const DimInfo& dim : op->dims)
        if (dim.name == "s" || dim.name == "t") conditions.push_back(fmt::format("{} == {}", t.name, dim.name));
    }
    for (const DimInfo& dim : op->dims) args += fmt::format("{}, ", dim.name);
    for (const ParamInfo& param : op->params) args += fmt::format("{}, ", param.name);
    args = fmt::format("[{}]", args.substr(0, args.size() - 2));
    for (const std::string& condition : conditions) {
      Limits limits;
      try {
        limits = plugin::Shim::read(*op, fmt::format("args: {}\nrequires: [\"{}\"]\n", args, condition), "shim.yaml")
                     .limits();
      } catch (const InputError&) {
        continue;  // the contract allows no such call
      }
      if (!tries_all() && tried++ % 16 != 0) continue;
      Kernel kernel = *kernels_of(op->name).front();
      ASSERT_EQ(kernel.backend, Backend::cpu) << op->name;
      kernel.limits = &limits;
      const KernelResult result = run_campaign(*op, kernel, options);
      for (const ObligationResult& o : result.obligations) {
        EXPECT_NE(o.verdict, Verdict::falsified)
            << o.info->id << ": " << condition << ": " << (o.counterexample ? o.counterexample->finding.message : "");
        EXPECT_FALSE(o.verdict == Verdict::mistrusted && o.elements == 0 && o.cases > o.refused)
            << o.info->id << ": " << condition << ": " << o.reason;
      }
    }
  }
}

/// Looks up rows; `run` decides the treatment of invalid ids.
struct Lookup {
  explicit Lookup(void (*run)(const Call&)) {
    limits.rejects = {"ids"};
    kernel.op = "embedding", kernel.id = "embedding/cpu/looks_up", kernel.limits = &limits;
    kernel.run = [run](const Call& call, Device&) { run(call); };
  }
  Outcome outcome() const {
    const OpDescriptor& op = operation("embedding");
    const Case c{
        .dims = {3, 5, 2}, .params = {}, .strategy = Strategy::gaussian, .seed = 9, .prelude = {}, .values = {}};
    Worker worker(std::chrono::seconds(5));
    return try_obligation(&builtin::frame, op, kernel, c, worker);
  }
  Limits limits;
  Kernel kernel;
};

bool inside(const Call& call) {
  const auto* ids = static_cast<const std::int32_t*>(call.tensors[0].data);
  for (Index i = 0; i < call.dims[0]; ++i)
    if (ids[i] < 0 || ids[i] >= call.dims[1]) return false;
  return true;
}
void copy(const Call& call) {
  const auto* ids = static_cast<const std::int32_t*>(call.tensors[0].data);
  const Tensor &table = call.tensors[1], &y = call.tensors[2];
  for (Index i = 0; i < call.dims[0]; ++i)
    for (Index j = 0; j < call.dims[2]; ++j)
      static_cast<float*>(y.data)[i * y.strides[0] + j] =
          ids[i] < 0 || ids[i] >= call.dims[1] ? 0
                                               : static_cast<const float*>(table.data)[ids[i] * table.strides[0] + j];
}

/// Runs a kernel that writes y, and rrms if `all`.
Outcome normalized(bool all, const std::vector<int>& absent) {
  Limits limits;
  limits.absent = absent;
  Kernel kernel;
  kernel.op = "rmsnorm", kernel.id = "rmsnorm/cpu/some", kernel.limits = &limits;
  kernel.run = [all](const Call& call, Device&) {
    const Tensor &x = call.tensors[0], &weight = call.tensors[1], &y = call.tensors[2], &rrms = call.tensors[3];
    for (Index i = 0; i < call.dims[0]; ++i) {
      const float* in = static_cast<const float*>(x.data) + i * x.strides[0];
      float sum = 0;
      for (Index j = 0; j < call.dims[1]; ++j) sum += in[j] * in[j];
      const float root = 1 / std::sqrt(sum / static_cast<float>(call.dims[1]) + static_cast<float>(call.params[0]));
      for (Index j = 0; j < call.dims[1]; ++j)
        static_cast<float*>(y.data)[i * y.strides[0] + j] = in[j] * root * static_cast<const float*>(weight.data)[j];
      if (all) static_cast<float*>(rrms.data)[i] = std::nextafter(root, 2 * root);
    }
  };
  const OpDescriptor& op = operation("rmsnorm");
  const Case c{
      .dims = {3, 5}, .params = {1e-6}, .strategy = Strategy::gaussian, .seed = 9, .prelude = {}, .values = {}};
  Worker worker(std::chrono::seconds(5));
  for (const Obligation& o : obligations("rmsnorm"))
    if (const Outcome outcome = try_obligation(o.check, op, kernel, c, worker); outcome.kind != Outcome::Kind::passed)
      return outcome;
  return {};
}

TEST(Absent, AnOutputThatIsNotGivenIsNotJudgedAndNotTouched) {
  EXPECT_EQ(normalized(false, {3}).kind, Outcome::Kind::passed);
  EXPECT_EQ(normalized(false, {}).kind, Outcome::Kind::falsified) << "unwritten";
  const Outcome touched = normalized(true, {3});
  ASSERT_EQ(touched.kind, Outcome::Kind::falsified);
  EXPECT_NE(touched.finding->message.find("untouchable rrms was changed"), std::string::npos)
      << touched.finding->message;
}

TEST(Rejections, AKernelThatSaysThatItRejectsIsHeldToIt) {
  const Outcome right = Lookup([](const Call& call) {
                          if (!inside(call)) throw Unavailable("ids", "out of range");
                          copy(call);
                        }).outcome();
  EXPECT_EQ(right.kind, Outcome::Kind::passed) << (right.finding ? right.finding->message : right.reason);
  EXPECT_GT(right.elements, 0);
  const Outcome takes = Lookup([](const Call& call) { copy(call); }).outcome();
  ASSERT_EQ(takes.kind, Outcome::Kind::falsified);
  EXPECT_NE(takes.finding->message.find("took the call"), std::string::npos) << takes.finding->message;
  const Outcome late = Lookup([](const Call& call) {
                         copy(call);
                         if (!inside(call)) throw Unavailable("ids", "out of range");
                       }).outcome();
  ASSERT_EQ(late.kind, Outcome::Kind::falsified);
  EXPECT_NE(late.finding->message.find("refused, but"), std::string::npos) << late.finding->message;
  const Outcome crashes = Lookup([](const Call& call) {
                            if (!inside(call)) __builtin_trap();
                            copy(call);
                          }).outcome();
  ASSERT_EQ(crashes.kind, Outcome::Kind::falsified);
  EXPECT_NE(crashes.finding->message.find("signal"), std::string::npos) << crashes.finding->message;
}

}  // namespace
}  // namespace assay::falsify::admit_test
