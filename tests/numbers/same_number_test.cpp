// References evaluate some numbers in two orders and keep the value of one with the bounds of both: in fifty digits the
// two orders must agree.
#include <gtest/gtest.h>

#include <random>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/digits50.hpp"
#include "falsify/engine/trial.hpp"

namespace assay::numbers::same_number_test {
namespace {

struct Fifty {
  Digits50 v = 0;
  Fifty() = default;
  template <class X>
  requires std::is_arithmetic_v<X> Fifty(X x) : v(x) {}  // NOLINT(google-explicit-constructor)
  explicit Fifty(const Digits50& x) : v(x) {}
  explicit operator Index() const { return static_cast<Index>(v); }

  friend Fifty operator+(const Fifty& x, const Fifty& y) { return Fifty(x.v + y.v); }
  friend Fifty operator-(const Fifty& x, const Fifty& y) { return Fifty(x.v - y.v); }
  friend Fifty operator-(const Fifty& x) { return Fifty(-x.v); }
  friend Fifty operator*(const Fifty& x, const Fifty& y) { return Fifty(x.v * y.v); }
  friend Fifty operator/(const Fifty& x, const Fifty& y) { return Fifty(x.v / y.v); }
  friend Fifty exp(const Fifty& x) { return Fifty(boost::multiprecision::exp(x.v)); }
  friend Fifty sqrt(const Fifty& x) { return Fifty(boost::multiprecision::sqrt(x.v)); }
};

int compared = 0;
double constants = 0;  // relative error of the formula's constants if they are computed in double

/// Operands are of moderate size: the roundings of fifty digits are far below the fortieth digit.
Fifty both(const Fifty& x, const Fifty& y) {
  EXPECT_LT(abs(x.v - y.v), Digits50(1) / pow(Digits50(10), 40) + constants * abs(x.v)) << x.v << " and " << y.v;
  ++compared;
  return x;
}
Fifty any_order(const Fifty& x, const Fifty& y) { return both(x, y); }
Fifty any_sum_order(const Fifty& x, const Fifty& y) { return both(x, y); }
Fifty any_formula(const Fifty& x, const Fifty& y) { return both(x, y); }

}  // namespace
}  // namespace assay::numbers::same_number_test

// Include after the overloads, which this header calls.
#include "core/scaled_sum.hpp"
#include "reference/adamw_step.hpp"
#include "reference/cross_entropy_backward.hpp"
#include "reference/orders.hpp"
#include "reference/q4_k_gemv.hpp"
#include "reference/rmsnorm_backward.hpp"
#include "reference/silu_backward.hpp"
#include "reference/silu_mul_backward.hpp"

namespace assay::numbers::same_number_test {
namespace {

/// The tensors of a case of Gaussian inputs, with space for the outputs.
struct Point {
  std::vector<std::vector<Fifty>> held;
  std::vector<View<Fifty>> views;
  std::vector<double> params;

  Point(std::string_view name, std::vector<Index> dims, std::vector<double> its_params, std::uint64_t seed)
      : params(std::move(its_params)) {
    const OpDescriptor& op = operation(name);
    falsify::Case c;
    c.dims = std::move(dims), c.params = params, c.seed = seed;
    c.strategy = falsify::Strategy::gaussian;
    const falsify::Problem problem = falsify::make_problem(op, c, {});
    held.resize(op.tensors.size());
    for (std::size_t t = 0; t < held.size(); ++t) {
      const Shape shape = problem.shape(static_cast<int>(t));
      held[t].assign(problem.values[t].begin(), problem.values[t].end());
      held[t].resize(static_cast<std::size_t>(shape.size()));
      views.emplace_back(held[t].data(), shape);
    }
  }
  const View<Fifty>& operator[](std::size_t t) const { return views[t]; }
};

class SameNumber : public testing::Test {
 protected:
  void SetUp() override { compared = 0, constants = 0; }
};

TEST_F(SameNumber, OfSiluBackward) {
  const Point p("silu_backward", {3, 5}, {}, 1);
  reference::silu_backward<Fifty>(p[0], p[1], p[2]);
  EXPECT_EQ(compared, 15);
}

TEST_F(SameNumber, OfSiluMulBackward) {
  const Point p("silu_mul_backward", {3, 5}, {}, 2);
  reference::silu_mul_backward<Fifty>(p[0], p[1], p[2], p[3], p[4]);
  EXPECT_EQ(compared, 15);
}

TEST_F(SameNumber, OfCrossEntropyBackward) {
  const Point p("cross_entropy_backward", {4, 6}, {}, 3);
  reference::cross_entropy_backward<Fifty>(p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7]);
  EXPECT_GT(compared, 0);
}

TEST_F(SameNumber, OfAdamW) {
  constants = 8 * 0x1p-53;  // each order multiplies by three constants of up to two roundings each
  for (const double step : {1.0, 2.0, 100.0}) {
    const Point p("adamw_step", {9, 1}, {0.001, 0.9, 0.999, 1e-8, 0.01, step}, 4);
    reference::adamw_step<Fifty>(p[0], p[1], p[2], p[3], p[4], 0.001, 0.9, 0.999, 1e-8, 0.01, step);
  }
  EXPECT_EQ(compared, 297);
}

TEST_F(SameNumber, OfRmsnormBackward) {
  constants = 4 * 0x1p-53;
  const Point p("rmsnorm_backward", {2, 5}, {}, 6);
  reference::rmsnorm_backward<Fifty>(p[0], p[1], p[2], p[3], p[4], p[5]);
  EXPECT_EQ(compared, 30);
}

/// Compares sums by elements, by sub-blocks and by super-blocks, over one whole super-block and a part of the next that
/// ends inside a sub-block.
TEST_F(SameNumber, OfQ4KGemv) {
  constexpr Index kRows = 2, kWidth = 256 + 77, kBytes = 288;
  std::mt19937 random(5);
  std::vector<Fifty> bytes, x, y(kRows);
  for (Index i = 0; i < kRows * kBytes; ++i) bytes.emplace_back(static_cast<int>(random() % 256));
  // d from 1, dmin from -1/2 on
  for (std::size_t i = 0; i < bytes.size(); i += 144) bytes[i + 1] = Fifty(0x3c), bytes[i + 3] = Fifty(0xb8);
  for (Index p = 0; p < kWidth; ++p) x.push_back(Fifty(static_cast<int>(random() % 2001) - 1000) / 7);
  reference::q4_k_gemv<Fifty>(View<const Fifty>(bytes.data(), {kRows, kBytes}), View<const Fifty>(x.data(), {kWidth}),
                              View<Fifty>(y.data(), {kRows}));
  EXPECT_EQ(compared, 2 * kRows);
}

TEST_F(SameNumber, OfScaledSums) {
  ScaledSum<Fifty> sum(Fifty(1.25));
  for (int i = 1; i < 9; ++i) sum += Fifty(i) / 7, sum.scaled(Fifty(i) / 3, Fifty(-1) / i);
  EXPECT_LT(abs(sum.value().v - (Digits50(36) / 7 - Digits50(10) / 3)), Digits50(1) / pow(Digits50(10), 40));
  EXPECT_EQ(compared, 1);
}

}  // namespace
}  // namespace assay::numbers::same_number_test
