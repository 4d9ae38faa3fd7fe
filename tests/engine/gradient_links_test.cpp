// Link 3 on kernels and references made for it; tests/gradients applies it to the contracts' own kernels.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "core/errors.hpp"
#include "falsify/engine/gradient_point.hpp"

namespace assay::falsify::gradient_links_test {
namespace {

GradientCase square(std::uint64_t seed = 5) { return {&operation("matmul"), 0, {4, 4, 3}, {}, seed}; }

/// Copies of the kernel for the gradient of a in c = a b, matmul_nt(dc, b), under these ids; the test plants a fault in
/// each.
std::vector<Kernel> named(std::initializer_list<std::string_view> ids) {
  std::vector<Kernel> list;
  for (const std::string_view id : ids) {
    list.push_back(kernel("matmul_nt/cpu/naive"));
    list.back().id = id;
  }
  return list;
}

GradientReport linked(const std::vector<Kernel>& kernels, const RunKernel& run, const GradientCase& c = square()) {
  std::vector<const Kernel*> pointers;
  for (const Kernel& k : kernels) pointers.push_back(&k);
  GradientReport report{"matmul", "a", {}};
  check_kernels(report, c, backward_oracle("matmul"), pointers, run);
  EXPECT_EQ(report.links.size(), 2U);
  EXPECT_EQ(report.links[0].link, Link::kernel);
  EXPECT_EQ(report.links[1].link, Link::accumulation);
  return report;
}

/// Returns the output of the library's kernel for this problem.
std::vector<std::vector<float>> right(const Problem& problem) {
  return run_here(kernel("matmul_nt/cpu/naive"), problem);
}

TEST(KernelLink, OfNoKernelIsNothing) {
  for (const LinkResult& l : linked({}, run_here).links) {
    EXPECT_EQ(l.worst, 0);
    EXPECT_EQ(l.compared, 0);
    EXPECT_EQ(l.detail, "");
  }
}

TEST(KernelLink, OtherOperationsAndFormatsArePassedOver) {
  std::vector<Kernel> kernels = named({"one", "another", "third"});
  kernels[0].op = "matmul";
  kernels[1].storage = DType::f16;
  int runs = 0;
  const GradientReport report = linked(kernels, [&](const Kernel& k, const Problem& problem) {
    EXPECT_EQ(k.id, "third");
    ++runs;
    return right(problem);
  });
  EXPECT_EQ(runs, 2);
  for (const LinkResult& l : report.links) EXPECT_EQ(l.compared, 16);
}

TEST(KernelLink, CountsEveryElementOfEveryKernel) {
  for (const LinkResult& l : linked(named({"one", "two", "three"}), run_here).links) {
    EXPECT_EQ(l.compared, 48) << name(l.link);
    EXPECT_GT(l.worst, 0);
    EXPECT_LE(l.worst, 1);
  }
}

/// Reports on kernels whose gradients are off by a fraction of the bound, one fraction per kernel.
GradientReport off_by(const std::vector<std::pair<std::string_view, float>>& ulps) {
  std::vector<Kernel> kernels;
  for (const auto& [id, _] : ulps) kernels.push_back(named({id}).front());
  return linked(kernels, [&](const Kernel& k, const Problem& problem) {
    std::vector<std::vector<float>> result = right(problem);
    for (const auto& [id, many] : ulps)
      if (id == k.id) result[0][7] += many * 0x1p-23f * std::fabs(result[0][7]);
    return result;
  });
}

TEST(KernelLink, TellsOfTheWorstKernelWhereverItStands) {
  const double alone = off_by({{"bad", 1000}}).links[0].worst, better = off_by({{"good", 0}}).links[0].worst;
  EXPECT_GT(alone, 1);
  EXPECT_LT(better, 1);
  for (const auto& order : {std::vector<std::pair<std::string_view, float>>{{"bad", 1000}, {"good", 0}},
                            {{"good", 0}, {"bad", 1000}},
                            {{"good", 0}, {"bad", 1000}, {"good too", 0}}})
    for (const LinkResult& l : off_by(order).links) {
      EXPECT_TRUE(std::isinf(l.worst)) << "a finding holds by no tolerance";
      EXPECT_TRUE(l.detail.starts_with("bad: ")) << l.detail;
    }
  EXPECT_TRUE(std::isinf(alone));
}

TEST(KernelLink, KeepsTheLargestOfDifferencesWithinTheBounds) {
  const double one = off_by({{"one", 0}}).links[0].worst;
  float ulps = 0;
  double two = one;
  while (two <= one) two = off_by({{"two", ++ulps}}).links[0].worst;
  ASSERT_LE(two, 1);
  for (const auto& order :
       {std::vector<std::pair<std::string_view, float>>{{"one", 0}, {"two", ulps}}, {{"two", ulps}, {"one", 0}}}) {
    const LinkResult link = off_by(order).links[0];
    EXPECT_EQ(link.worst, two);
    EXPECT_EQ(link.detail, "two");
  }
}

TEST(KernelLink, OfEqualDifferencesTheFirstIsNamed) {
  EXPECT_EQ(off_by({{"one", 0}, {"two", 0}}).links[0].detail, "one");
}

TEST(KernelLink, WhatNoCallComputesHasNone) {
  for (const OpDescriptor* op : operations())
    for (const GradientInfo& gradient : op->gradients) {
      if (!gradient.by.empty()) continue;
      GradientReport report{op->name, "", {}};
      check_kernels(report, draw_gradient_case(*op, gradient.input, 1), backward_oracle(op->name), {}, run_here);
      EXPECT_TRUE(report.links.empty()) << gradient.id;
    }
}

/// Two results are added to the previous contents: either result, or only the sum, may be wrong.
TEST(KernelLink, AccumulationSeesTheSecondResultToo) {
  for (const std::size_t element : {0, 9, 15}) {
    int runs = 0;
    const GradientReport report = linked(named({"one"}), [&](const Kernel&, const Problem& problem) {
      std::vector<std::vector<float>> result = right(problem);
      if (++runs == 2) result[0][element] += 1;
      return result;
    });
    EXPECT_LE(report.links[0].worst, 1);
    EXPECT_GT(report.links[1].worst, 1) << element;
  }
}

TEST(KernelLink, UpstreamGradientsOfTheTwoDiffer) {
  std::vector<Problem> asked;
  linked(named({"one"}), [&](const Kernel&, const Problem& problem) {
    asked.push_back(problem);
    return right(problem);
  });
  ASSERT_EQ(asked.size(), 2U);
  EXPECT_NE(asked[0].values[0], asked[1].values[0]);
  EXPECT_EQ(asked[0].values[1], asked[1].values[1]);
  EXPECT_EQ(asked[0].dims, asked[1].dims);
}

/// Saved values reach kernels as floats, so their bounds, worst case and statistical, start with that rounding; inputs
/// and upstream gradients are already floats.
int rounded = 0, others = 0;
void looks_at_what_was_saved(std::span<const View<Bounded>> t, std::span<const double>) {
  const View<Bounded> x = t[0], weight = t[1], rrms = t[2], dy = t[3];
  for (Index i = 0; i < rrms.size(); ++i) {
    const Bounded& r = rrms.data()[i];
    const double distance = std::fabs(r.value - static_cast<float>(r.value));
    rounded += distance > 0 && r.error == distance && r.statistical == distance && !r.may_overflow;
  }
  for (const View<Bounded>& view : {x, weight, dy})
    for (Index i = 0; i < view.size(); ++i)
      others += view.data()[i].error != 0 || view.data()[i].value != static_cast<float>(view.data()[i].value);
  backward_oracle("rmsnorm").bounded(t, std::vector<double>{1e-5});
}

TEST(KernelLink, SavedValuesAreRoundedOnce) {
  const OpDescriptor& op = operation("rmsnorm");
  const GradientCase c{&op, 0, {6, 5}, {1e-5}, 3};
  BackwardOracle backward = backward_oracle("rmsnorm");
  backward.bounded = &looks_at_what_was_saved;
  const Kernel* const naive = &kernel("rmsnorm_backward/cpu/naive");
  GradientReport report{"rmsnorm", "x", {}};
  rounded = others = 0;
  check_kernels(report, c, backward, std::span(&naive, 1), run_here);
  EXPECT_EQ(rounded, 2 * 6) << "of each row, for each of two upstream gradients";
  EXPECT_EQ(others, 0);
  EXPECT_TRUE(report.holds());
}

/// Returns the problems that the kernel was called with.
std::vector<Problem> asked_for(std::string_view op_name, int input, const std::vector<Index>& dims,
                               const std::vector<double>& params, const Kernel& k) {
  const OpDescriptor& op = operation(op_name);
  const GradientCase c{&op, input, dims, params, 3};
  const Kernel* const one = &k;
  GradientReport report{op.name, op.tensors[static_cast<std::size_t>(input)].name, {}};
  std::vector<Problem> asked;
  check_kernels(report, c, backward_oracle(op_name), std::span(&one, 1),
                [&](const Kernel& kernel, const Problem& problem) {
                  asked.push_back(problem);
                  return run_here(kernel, problem);
                });
  EXPECT_TRUE(report.holds()) << op_name << " " << input << ": " << (report.broken() ? report.broken()->detail : "");
  EXPECT_EQ(asked.size(), 2U);
  return asked;
}

TEST(KernelLink, TheComposedCallHasTheDimsAndParametersOfItsOwn) {
  for (const int input : {0, 1})  // each input has its own output
    for (const Problem& problem : asked_for("rmsnorm", input, {6, 5}, {0.5}, kernel("rmsnorm_backward/cpu/naive")))
      EXPECT_EQ(problem.dims, (std::vector<Index>{6, 5}));
  for (const Problem& problem : asked_for("rope", 0, {3, 2, 4}, {500, 1, 0}, kernel("rope_backward/cpu/naive"))) {
    EXPECT_EQ(problem.dims, (std::vector<Index>{3, 2, 4}));
    EXPECT_EQ(problem.params, (std::vector<double>{500, 1, 0}));
    EXPECT_EQ(problem.values[1].size(), 3U) << "positions";
  }
  // a [m, k], b [k, n]: da = dc b' is m times n times k, db = a' dc is k times m times n.
  for (const Problem& problem : asked_for("matmul", 0, {4, 2, 3}, {}, kernel("matmul_nt/cpu/naive"))) {
    EXPECT_EQ(problem.dims, (std::vector<Index>{4, 3, 2}));
    EXPECT_EQ(problem.values[0].size(), 12U);
    EXPECT_EQ(problem.values[1].size(), 6U);
  }
  for (const Problem& problem : asked_for("matmul", 1, {4, 2, 3}, {}, kernel("matmul_tn/cpu/naive"))) {
    EXPECT_EQ(problem.dims, (std::vector<Index>{2, 4, 3}));
    EXPECT_EQ(problem.values[0].size(), 8U);
    EXPECT_EQ(problem.values[1].size(), 12U);
  }
}

/// A contract's call names tensors, with or without blanks in between.
TEST(KernelLink, ACallIsReadWithOrWithoutBlanks) {
  const auto asked = [](const char* by) {
    OpDescriptor op = operation("matmul");
    std::vector<GradientInfo> gradients(op.gradients.begin(), op.gradients.end());
    for (GradientInfo& gradient : gradients)
      if (gradient.input == 0) gradient.by = by;
    op.gradients = gradients;
    GradientCase c = square();
    c.op = &op;
    std::vector<std::vector<std::vector<float>>> values;
    linked(
        named({"one"}),
        [&](const Kernel&, const Problem& problem) {
          values.push_back(problem.values);
          return right(problem);
        },
        c);
    return values;
  };
  const auto usual = asked("matmul_nt(dc, b)");
  ASSERT_EQ(usual.size(), 2U);
  for (const char* by : {"matmul_nt(dc,b)", "matmul_nt( dc , b )", "matmul_nt(dc,  b)"})
    EXPECT_EQ(asked(by), usual) << by;
  try {
    asked("matmul_nt(dc, q)");
    FAIL() << "q is no tensor";
  } catch (const InputError& e) {
    EXPECT_EQ(e.problem, "a gradient's call names q, which is no input, no output and no d<output>");
    EXPECT_EQ(e.where, operation("matmul").file);
  }
}

TEST(GradientPoint, InputsAreDrawnFromItsSeedAsGaussian) {
  const OpDescriptor& op = operation("matmul");
  for (const int input : {0, 1}) {
    const GradientCase c{&op, input, {3, 4, 5}, {}, 11};
    const GradientPoint at(c);
    EXPECT_EQ(at.position, static_cast<std::size_t>(input));
    Case point;
    point.dims = c.dims;
    point.strategy = Strategy::gaussian;
    point.seed = derive(11, "point");
    const Problem problem = make_problem(op, point, {});
    for (std::size_t t = 0; t < 2; ++t)
      EXPECT_EQ(std::vector<float>(at.x[t].begin(), at.x[t].end()), problem.values[t]);
    EXPECT_EQ(at.v.size(), problem.values[static_cast<std::size_t>(input)].size());
    ASSERT_EQ(at.w.size(), 1U);
    EXPECT_EQ(at.w[0].size(), 15U);
    for (const double w : at.w[0]) EXPECT_EQ(w, static_cast<float>(w));
  }
}

/// x + h v is exact in double for the difference steps, and every element moves in one direction or the other.
TEST(GradientPoint, DirectionsLieOnAGridAndMissNothing) {
  std::set<double> sizes[2];
  int up = 0, down = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const GradientCase c{&operation("matmul"), 0, {20, 20, 3}, {}, seed};
    const GradientPoint at(c);
    ASSERT_EQ(at.v.size(), 400U);
    for (std::size_t i = 0; i < at.v.size(); ++i) {
      const double v = at.v[i], x = at.x[at.position][i];
      EXPECT_EQ(v * 16, std::round(v * 16));
      for (int k = 10; k <= 23; ++k) EXPECT_EQ((x + std::ldexp(v, -k)) - x, std::ldexp(v, -k));
      sizes[v < 0].insert(std::fabs(v));
      (v > 0 ? up : down) += v != 0;
    }
  }
  for (const std::set<double>& some : sizes) {
    EXPECT_EQ(*some.begin(), 1.0 / 16) << "the smallest is one step of the grid";
    for (int i = 1; i <= 30; ++i) EXPECT_TRUE(some.contains(i / 16.0)) << i;
  }
  EXPECT_EQ(up + down, 20 * 400);
  // Allow six standard deviations of that many fair draws.
  EXPECT_NEAR(up, 10 * 400, 6 * std::sqrt(20 * 400 / 4.0));
}

}  // namespace
}  // namespace assay::falsify::gradient_links_test
