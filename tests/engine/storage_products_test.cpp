// Products of 16-bit matrices: sums of the tiles, and draws whose results a 16-bit format holds.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "falsify/properties/shared/products.hpp"
#include "kernels/cpu/amx.hpp"
#include "kernels/storage.hpp"
#include "runtime/registry.hpp"

namespace assay::storage_products_test {
namespace {

using falsify::Matrix;
using falsify::Random;

/// The operands of one product in the format S.
template <class S>
struct Operands {
  std::vector<S> a, b;
  std::vector<float> wide_a, wide_b;

  /// `whole`: small integers, whose sums are exact in every order.
  Operands(Index m, Index k, Index n, Random& random, bool whole) {
    const auto fill = [&](std::vector<S>& values, std::vector<float>& wide, Index count) {
      for (Index i = 0; i < count; ++i) {
        const double drawn = random.gaussian();
        values.push_back(narrow<S>(static_cast<float>(whole ? std::round(4 * drawn) : drawn)));
        wide.push_back(widen(values.back()));
      }
    };
    fill(a, wide_a, m * k);
    fill(b, wide_b, k * n);
  }
};

template <class T>
Tensor tensor(std::vector<T>& values, DType dtype, Index rows, Index columns) {
  return {dtype, values.data(), {rows, columns}, {columns, 1}};
}

/// Runs the 16-bit tiles and those of float32 on the same values: results are the float32 ones, rounded once.
template <class S, class Result>
void expect_sums_of_float32(const std::string& op, DType dtype, bool a_transposed, bool b_transposed) {
  Random random(7);
  for (const auto& [m, k, n] : {std::tuple<Index, Index, Index>{1, 1, 1},
                                {3, 0, 5},
                                {13, 300, 37},
                                {5, 257, 1},
                                {1, 513, 600},
                                {900, 33, 3},
                                {200, 600, 530}}) {
    // AMX sums in an order of its own.
    Operands<S> x(m, k, n, random, std::is_same_v<S, BFloat16> && cpu::amx::available());
    std::vector<Result> got(static_cast<std::size_t>(m * n));
    std::vector<float> want(got.size());
    const auto call = [&, m = m, k = k, n = n](DType of, auto& a, auto& b, auto& c, DType of_c) {
      return Call{{m, k, n},
                  {},
                  {tensor(a, of, a_transposed ? k : m, a_transposed ? m : k),
                   tensor(b, of, b_transposed ? n : k, b_transposed ? k : n), tensor(c, of_c, m, n)}};
    };
    Device& host = device(Backend::cpu);
    const DType stored = std::is_same_v<Result, float> ? DType::f32 : dtype;
    kernel(op + "/cpu/highway_tiled_" + std::string(name(dtype))).run(call(dtype, x.a, x.b, got, stored), host);
    kernel(op + "/cpu/highway_tiled").run(call(DType::f32, x.wide_a, x.wide_b, want, DType::f32), host);
    for (std::size_t i = 0; i < got.size(); ++i)
      ASSERT_EQ(widen(got[i]), widen(narrow<Result>(want[i]))) << op << " " << m << " " << k << " " << n << ", " << i;
  }
}

TEST(StorageProducts, TilesSumAsInFloat32AndRoundOnce) {
  for (const bool b_transposed : {false, true}) {
    const std::string op = b_transposed ? "matmul_nt" : "matmul";
    expect_sums_of_float32<Half, Half>(op, DType::f16, false, b_transposed);
    expect_sums_of_float32<BFloat16, BFloat16>(op, DType::bf16, false, b_transposed);
  }
  expect_sums_of_float32<Half, float>("matmul_tn", DType::f16, true, false);
  expect_sums_of_float32<BFloat16, float>("matmul_tn", DType::bf16, true, false);
}

/// Returns the largest sum of magnitudes that the product and one more term can have.
double largest_sum(const Matrix& a, const Matrix& b, double term) {
  double most = 0;
  for (Index i = 0; i < a.rows; ++i)
    for (Index j = 0; j < b.columns; ++j) {
      double sum = term;
      for (Index p = 0; p < a.columns; ++p) sum += std::fabs(a(i, p) * b(p, j));
      most = std::max(most, sum);
    }
  return most;
}

/// Every sum of a large case is an integer that the format holds, and every term counts in some sum.
TEST(StorageProducts, LargeCasesHaveStorableSums) {
  Random random(9);
  for (const bool a_selects : {false, true})
    for (const auto& [format, bits, limit] :
         {std::tuple<DType, int, double>{DType::f16, 11, 2048}, {DType::bf16, 8, 256}}) {
      Matrix a(513, 40), b(40, 520);
      for (Matrix* x : {&a, &b})
        for (float& v : x->values)
          v = (x == &a) == a_selects ? static_cast<float>(random.between(-1, 1))
                                     : static_cast<float>(random.between(1 << (bits - 1), (1 << bits) - 1) | 1);
      falsify::make_sums_storable(a, b, format, random);
      EXPECT_LE(largest_sum(a, b, limit / 16 - 1), limit);
      for (Index p = 0; p < a.columns; ++p) {
        double size = 0;
        for (Index i = 0; i < a.rows; ++i)
          for (Index j = 0; j < b.columns; ++j) size += std::fabs(a(i, p) * b(p, j));
        EXPECT_GT(size, 0) << "term " << p << " is in no sum";
      }
    }
}

}  // namespace
}  // namespace assay::storage_products_test
