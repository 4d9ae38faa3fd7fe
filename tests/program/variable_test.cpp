// Variables with gradients: what operations give, which gradients exist, what adds up, what is refused.
#include "program/variable.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "on_device.hpp"
#include "program/operations.hpp"
#include "runtime/span.hpp"
#include "serve/trace.hpp"
#include "refusal.hpp"

namespace assay::program::variable_test {
namespace {

using Floats = std::vector<float>;
using Gradient = std::optional<Floats>;

class Variables : public OnDevice {
 protected:
  template <class F, class... A>
  auto run(F f, const A&... arguments) {
    return eager_on(*device_, f, arguments...);
  }
  /// The gradient of `leaf` where `root` depends on it.
  Gradient gradient(const Variable& root, const Floats& upstream, const Variable& leaf) {
    backward(root, upstream, *device_);
    return leaf.gradient();
  }
};

TEST_P(Variables, ProductsAndTransposes) {
  const Variable a({2, 2}, {1, 2, 3, 4}), b({2, 2}, {5, 6, 7, 8}), wide({2, 3}, {1, 2, 3, 4, 5, 6}),
      tall({3, 2}, {7, 8, 9, 10, 11, 12}), rows({4, 3}, {1, 0, 0, 0, 1, 0, 0, 0, 1, 1, 1, 1});
  EXPECT_EQ(run(matmul, a, b).values(), (Floats{19, 22, 43, 50}));
  EXPECT_EQ(run(matmul, wide, tall).values(), (Floats{58, 64, 139, 154}));
  EXPECT_EQ(run(matmul_nt, a, b).values(), (Floats{17, 23, 39, 53}));
  EXPECT_EQ(run(matmul_nt, wide, rows).values(), (Floats{1, 2, 3, 6, 4, 5, 6, 15}));
  const Variable turned = run(transpose, wide);
  EXPECT_EQ(turned.values(), (Floats{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(turned.shape(), (Shape{3, 2}));
}

TEST_P(Variables, GradientsOfProductsReachBothOriginals) {
  const Variable a({2, 2}, {1, 2, 3, 4}, true), b({2, 2}, {5, 6, 7, 8}, true);
  backward(run(matmul_nt, a, b), Floats{1, 1, 1, 1}, *device_);
  EXPECT_EQ(a.gradient(), (Floats{12, 14, 12, 14}));
  EXPECT_EQ(b.gradient(), (Floats{4, 6, 4, 6}));
  const Variable c({1, 2}, {1, 2}, true), d({2, 1}, {3, 4}, true);
  backward(run(matmul, c, d), Floats{10}, *device_);
  EXPECT_EQ(c.gradient(), (Floats{30, 40}));
  EXPECT_EQ(d.gradient(), (Floats{10, 20}));
}

TEST_P(Variables, GradientsReachTheOriginalBehindATranspose) {
  const Variable wide({2, 3}, {1, 2, 3, 4, 5, 6}, true);
  EXPECT_EQ(gradient(run(transpose, wide), {10, 40, 20, 50, 30, 60}, wide), (Floats{10, 20, 30, 40, 50, 60}));
  const Variable a({2, 3}, {.1F, .2F, .3F, .4F, .5F, .6F}, true), x({1, 3}, {1, 2, 3});
  EXPECT_EQ(gradient(run(matmul, x, run(transpose, a)), {1, 1}, a), (Floats{1, 2, 3, 1, 2, 3}));
  EXPECT_EQ(x.gradient(), std::nullopt);
}

TEST_P(Variables, ScaledSums) {
  const Variable a({1, 2}, {1, 2}, true), b({1, 2}, {10, 20}, true);
  const Variable y = run(residual_add, a, b, 0.5);
  EXPECT_EQ(y.values(), (Floats{6, 12}));
  backward(y, Floats{3, 4}, *device_);
  EXPECT_EQ(a.gradient(), (Floats{3, 4}));
  EXPECT_EQ(b.gradient(), (Floats{1.5, 2}));
}

TEST_P(Variables, AResultRequiresAGradientIfAnInputDoes) {
  for (const bool of_a : {false, true})
    for (const bool of_b : {false, true}) {
      const auto product = [&](auto op) {
        const Variable a({2, 2}, {1, 2, 3, 4}, of_a), b({2, 2}, {5, 6, 7, 8}, of_b);
        const Variable y = run(op, a, b);
        EXPECT_EQ(y.requires_grad(), of_a || of_b);
        if (y.requires_grad()) backward(y, Floats{1, 1, 1, 1}, *device_);
        else EXPECT_THROW(backward(y, Floats{1, 1, 1, 1}, *device_), InputError);
        EXPECT_EQ(a.gradient().has_value(), of_a);
        EXPECT_EQ(b.gradient().has_value(), of_b);
      };
      product(matmul);
      product(matmul_nt);
      product([](Builder& builder, Value a, Value b) { return residual_add(builder, a, b, 2); });
    }
}

TEST_P(Variables, GradientsOfLeavesAddUpAndOthersDoNot) {
  const Variable x({1, 2}, {1, 2}, true);
  const Variable h = run(scale, x, 2), y = run(residual_add, h, run(scale, h, 3), 1);  // y = 2x + 6x
  EXPECT_EQ(gradient(y, {1, 10}, x), (Floats{8, 80}));
  EXPECT_EQ(gradient(y, {1, 10}, x), (Floats{16, 160})) << "a gradient of h that stays would give 24, 240";
  EXPECT_EQ(gradient(h, {1, 1}, x), (Floats{18, 162}));
  EXPECT_EQ(h.gradient(), std::nullopt);
  EXPECT_EQ(gradient(x, {1, 1}, x), (Floats{19, 163})) << "a leaf is its own root";
}

TEST_P(Variables, OperationsKeepTheValuesThatTheyRead) {
  Variable a({1, 1}, {2}, true);
  const Variable b({1, 1}, {5}, true);
  const Variable before = run(matmul, a, b);
  a.set({3});
  const Variable both = run(matmul, before, a);  // 2 b 3: a is read twice, once as 2 and once as 3
  EXPECT_EQ(both.values(), Floats{30});
  EXPECT_EQ(gradient(both, {1}, b), Floats{6});
  EXPECT_EQ(a.gradient(), Floats{5 * 3 + 10});
}

TEST_P(Variables, SeveralResultsAndIndices) {
  const Variable x({1, 2}, {3, 3}, true), w({2}, {1, 2});
  const auto [y, rrms] = run(rmsnorm, x, w, 1e-6);
  EXPECT_EQ(rrms.shape(), (Shape{1}));
  EXPECT_NEAR(y.values()[1], 2, 1e-6);
  EXPECT_TRUE(gradient(y, {1, 0}, x));
  struct Both {
    Value twice, thrice;
  };
  const auto multiples = [](Builder& b, Value v) { return Both{scale(b, v, 2), scale(b, v, 3)}; };
  const Variable v({1, 1}, {1}, true);
  const auto [twice, thrice] = run(multiples, v);
  EXPECT_EQ(gradient(thrice, {1}, v), Floats{3});
  EXPECT_EQ(gradient(run(residual_add, twice, thrice, 10), {1}, v), Floats{3 + 2 + 30});
  const Variable table({3, 2}, {1, 2, 3, 4, 5, 6}, true), ids = Variable::indices({2}, {2, 2});
  const Variable rows = run(embedding, ids, table);
  EXPECT_EQ(rows.values(), (Floats{5, 6, 5, 6}));
  EXPECT_EQ(gradient(rows, {1, 2, 10, 20}, table), (Floats{0, 0, 0, 0, 11, 22}));
}

/// Values that no rounding hides behind a pattern.
Floats waves(Index count, double frequency, int seed) {
  Floats all;
  for (Index i = 0; i < count; ++i)
    all.push_back(static_cast<float>(std::sin(frequency * static_cast<double>(i + seed))));
  return all;
}

/// Extent `axis` of a case, 1..most, so that cases differ in every extent.
Index extent(int seed, int axis, Index most) { return (seed * (2 * axis + 3) + seed / 7 * axis) % most + 1; }

TEST_P(Variables, C_LORA_GRAD_001) {  // the original gets the transposed gradient of its tracked transpose
  for (int seed = 0; seed < 100; ++seed) {
    const Index m = extent(seed, 0, 8), n = extent(seed, 1, 8);
    const Variable a({m, n}, waves(m * n, 0.37, seed), true);
    const Variable turned = run(transpose, a);
    EXPECT_EQ(turned.shape(), (Shape{n, m}));
    const Floats upstream = waves(m * n, 0.31, seed);
    EXPECT_EQ(gradient(turned, upstream, a), run(transpose, Variable({n, m}, upstream)).values()) << m << " x " << n;
  }
}

TEST_P(Variables, C_MATMUL_NT_001) {  // A [m, k], B [n, k], C [m, n], and gradients reach both originals
  for (int seed = 0; seed < 100; ++seed) {
    const Index m = extent(seed, 0, 8), k = extent(seed, 1, 8), n = extent(seed, 2, 8);
    const Variable a({m, k}, waves(m * k, 0.31, seed), true), b({n, k}, waves(n * k, 0.47, seed + 100), true);
    const Variable c = run(matmul_nt, a, b), dc({m, n}, waves(m * n, 0.37, seed));
    EXPECT_EQ(c.shape(), (Shape{m, n}));
    backward(c, dc.values(), *device_);
    EXPECT_EQ(a.gradient(), run(matmul, dc, b).values()) << m << ", " << k << ", " << n;
    EXPECT_EQ(b.gradient(), run(matmul_tn, dc, a).values()) << m << ", " << k << ", " << n;
  }
}

TEST_P(Variables, TheIdentityAndTheTransposedFactor) {
  for (int seed = 0; seed < 50; ++seed) {
    const Index m = extent(seed, 0, 6), k = extent(seed, 1, 6), n = extent(seed, 2, 6);
    Floats identity(static_cast<std::size_t>(k * k), 0);
    for (Index i = 0; i < k; ++i) identity[static_cast<std::size_t>(i * k + i)] = 1;
    Floats cosines;
    for (Index i = 0; i < n * k; ++i)
      cosines.push_back(static_cast<float>(std::cos(0.47 * static_cast<double>(i + seed + 100))));
    const Variable a({m, k}, waves(m * k, 0.37, seed)), b({n, k}, cosines);
    EXPECT_EQ(run(matmul, a, Variable({k, k}, identity)).values(), a.values());
    const Floats direct = run(matmul_nt, a, b).values(), detour = run(matmul, a, run(transpose, b)).values();
    const Floats x = a.values();
    for (Index i = 0; i < m; ++i)
      for (Index j = 0; j < n; ++j) {
        double magnitude = 0;
        for (Index p = 0; p < k; ++p)
          magnitude += std::fabs(double{x[static_cast<std::size_t>(i * k + p)]} *
                                 double{cosines[static_cast<std::size_t>(j * k + p)]});
        // Each of both is within gamma_k of the exact sum, in any order (Higham, section 3.1).
        const double ku = static_cast<double>(k) * 0x1p-24, bound = 2 * ku / (1 - ku) * magnitude;
        EXPECT_LE(std::fabs(double{direct[static_cast<std::size_t>(i * n + j)]} -
                            double{detour[static_cast<std::size_t>(i * n + j)]}),
                  bound);
      }
  }
}

/// Names of the operations that run while `f` does.
template <class F>
std::vector<std::string> traced(const F& f) {
  struct Kept final : trace::Sink {
    void ended(const trace::Span& span) noexcept override {
      if (!span.attribute("step").empty()) names.push_back(span.name);
    }
    std::vector<std::string> names;
  } kept;
  const trace::Recording recording(kept);
  f();
  return kept.names;
}

TEST_P(Variables, BackwardRunsNoForwardStepAgain) {
  const Variable a({1, 2}, {1, 2}, true), w({2, 1}, {3, 4});
  std::optional<Variable> y;
  EXPECT_EQ(traced([&] { y = run(matmul, run(silu, a), w); }), (std::vector<std::string>{"silu", "matmul"}));
  EXPECT_EQ(traced([&] { backward(*y, Floats{1}, *device_); }),
            (std::vector<std::string>{"matmul_nt", "silu_backward", "accumulate"}));
}

INSTANTIATE_TEST_SUITE_P(On, Variables, testing::ValuesIn(built_backends()), backend_name);

/// The sentence with which a call is refused.
bool has(const std::string& text, std::string_view part) {
  return text.find(part) != text.npos && text.find('\n') == text.npos;
}

TEST(Handles, ShareValuesAndGradient) {
  Variable a({1, 2}, {1, 2}, true);
  Variable copy = a;
  copy.set({3, 4});
  EXPECT_EQ(a.values(), (Floats{3, 4}));
  backward(eager(scale, a, 2), Floats{1, 1});
  EXPECT_EQ(copy.gradient(), (Floats{2, 2}));
  const Variable twice = eager(residual_add, a, copy, 1);  // one leaf, not two
  backward(twice, Floats{1, 1});
  EXPECT_EQ(a.gradient(), (Floats{4, 4}));
}

TEST(Gradients, AreSetAddedZeroedAndScaled) {
  Variable v({1, 2}, {1, 2}, true);
  EXPECT_EQ(v.gradient(), std::nullopt);
  v.zero_gradient();
  v.scale_gradient(2);
  EXPECT_EQ(v.gradient(), std::nullopt) << "only a write makes one";
  v.accumulate_gradient({1, 2});
  v.accumulate_gradient({10, 20});
  EXPECT_EQ(v.gradient(), (Floats{11, 22}));
  v.scale_gradient(0.5);
  EXPECT_EQ(v.gradient(), (Floats{5.5, 11}));
  v.set_gradient({7, INFINITY});
  EXPECT_EQ(v.gradient(), (Floats{7, INFINITY}));
  v.zero_gradient();
  EXPECT_EQ(v.gradient(), (Floats{0, 0}));
  Variable zeros = Variable::zeros({2, 1}, true, "z");
  EXPECT_EQ(zeros.values(), v.gradient());
  zeros.set_gradient({1, 2});
  EXPECT_EQ(refusal([&] { zeros.set({1}); }).substr(0, 3), "z: ");
}

TEST(Gradients, WrongLengthsAreRefused) {
  Variable v({2, 2}, {1, 2, 3, 4}, true, "w");
  EXPECT_TRUE(has(refusal([] {
                    Variable({2, 2}, {1, 2, 3}, true, "w");
                  }),
                  "w: 3 numbers were given, and shape [2, 2] has 4"));
  EXPECT_TRUE(has(refusal([] { Variable::indices({2}, {1}); }), "indices: 1 numbers"));
  EXPECT_TRUE(has(refusal([&] { v.set({1}); }), "1 numbers"));
  EXPECT_TRUE(has(refusal([&] { v.set_gradient({1}); }), "1 numbers"));
  EXPECT_TRUE(has(refusal([&] { v.accumulate_gradient({1, 2, 3, 4, 5}); }), "5 numbers"));
  EXPECT_EQ(v.gradient(), std::nullopt);
  const Variable y = eager(transpose, v);
  EXPECT_TRUE(has(refusal([&] { backward(y, {}); }), "upstream gradient of transpose.dst: 0 numbers"))
      << "it is missing";
  EXPECT_TRUE(has(refusal([&] { backward(y, Floats(3)); }), "3 numbers"));
  EXPECT_TRUE(has(refusal([&] { backward(y, Floats(5)); }), "5 numbers"));
  EXPECT_EQ(v.gradient(), std::nullopt);
  EXPECT_TRUE(has(refusal([&] {
                    eager(matmul, v, Variable({3, 1}, {1, 2, 3}));
                  }),
                  "k is 2 by a [2, 2], and 3 by b [3, 1]"));
}

TEST(Gradients, OfVariablesThatRequireNoneAreRefused) {
  Variable v({1, 1}, {1});
  EXPECT_TRUE(has(refusal([&] { v.set_gradient({1}); }), "it requires no gradient"));
  EXPECT_TRUE(has(refusal([&] { v.accumulate_gradient({1}); }), "it requires no gradient"));
  Variable y = eager(scale, Variable({1, 1}, {1}, true), 2);
  EXPECT_TRUE(has(refusal([&] { y.set({1}); }), "it is no leaf"));
  EXPECT_TRUE(has(refusal([] { static_cast<void>(Variable::indices({1}, {1}).values()); }), "its elements are i32"));
}

TEST(Gradients, OfALeafWithoutAPathAreRefusedAndNothingChanges) {
  const Variable a({1, 2}, {1, 2}, true, "a"), x({2}, {3, 4}, true, "x");
  const Variable y = eager(gemv, a, x);  // the contract names no call for its gradients
  EXPECT_EQ(y.values(), Floats{11});
  const auto flat = [](Builder& b, Value v) { return b.reshape(v, {1, 1}); };
  const Variable b({1, 1}, {5}, true), root = eager(residual_add, eager(flat, y), b, 1);
  EXPECT_TRUE(has(refusal([&] { backward(root, Floats{1}); }), "its path ends at gemv"));
  EXPECT_EQ(b.gradient(), std::nullopt);
}

TEST(Functions, OfSeveralStepsAreRecordedWhole) {
  const auto gated = [](Builder& b, Value x, Value w, double s) { return scale(b, matmul_nt(b, silu(b, x), w), s); };
  const Variable x({1, 2}, {0, 0}, true), w({1, 2}, {3, 4}, true);
  const Variable y = eager(gated, x, w, 2);
  EXPECT_EQ(y.values(), Floats{0});
  backward(y, Floats{1});
  EXPECT_EQ(x.gradient(), (Floats{3, 4})) << "silu'(0) = 1/2";
  EXPECT_EQ(w.gradient(), (Floats{0, 0}));
}

TEST(Functions, ThatKeepMoreThanTheirResultsAreRefused) {
  const Variable x({1, 2}, {1, 2}, true);
  const auto own = [](Builder& b, Value v) { return matmul_nt(b, v, b.parameter("w", {1, 2})); };
  EXPECT_TRUE(has(refusal([&] { eager(own, x); }), "parameters or states of its own"));
  EXPECT_TRUE(has(refusal([&] { eager(accumulate, x, x, 1); }), "which is an input"));
}

}  // namespace
}  // namespace assay::program::variable_test
