// One case of each reference worked out by hand, on 2 x 3 and 3 x 2 matrices that expose every transposition.
#include <gtest/gtest.h>

#include <vector>

#include "core/bounded.hpp"
#include "core/digits50.hpp"
#include "core/dual.hpp"
#include "reference/gemv.hpp"
#include "reference/matmul.hpp"
#include "reference/matmul_nt.hpp"
#include "reference/matmul_tn.hpp"
#include "reference/tensor_layout.hpp"
#include "reference/transpose.hpp"

namespace assay::numbers::golden_test {
namespace {

double number(float x) { return x; }
double number(double x) { return x; }
double number(const Bounded& x) { return x.value; }
double number(const Dual<double>& x) { return x.value; }
double number(const std::complex<double>& x) { return x.real(); }
double number(const Digits50& x) { return static_cast<double>(x); }

template <class T>
struct Tensor {
  std::vector<T> values;
  Shape shape;

  explicit Tensor(Shape s) : values(static_cast<std::size_t>(s.size()), T(99)), shape(s) {}
  Tensor(Shape s, std::initializer_list<double> v) : shape(s) {
    for (double x : v) values.push_back(T(x));
  }
  operator View<T>() { return {values.data(), shape}; }
  operator View<const T>() { return {values.data(), shape}; }
};

template <class T>
void expect(const Tensor<T>& got, std::vector<double> want) {
  ASSERT_EQ(got.values.size(), want.size());
  for (std::size_t i = 0; i < want.size(); ++i) EXPECT_EQ(number(got.values[i]), want[i]) << "element " << i;
}

template <class T>
class Golden : public testing::Test {};
using NumberTypes = testing::Types<float, double, Bounded, Dual<double>, std::complex<double>, Digits50>;
TYPED_TEST_SUITE(Golden, NumberTypes);

// A = [1 2 3; 4 5 6], B = [7 8; 9 10; 11 12], upstream D = [1 -1; 2 3].
TYPED_TEST(Golden, Matmul) {
  using T = TypeParam;
  Tensor<T> a({2, 3}, {1, 2, 3, 4, 5, 6}), b({3, 2}, {7, 8, 9, 10, 11, 12}), dc({2, 2}, {1, -1, 2, 3});
  Tensor<T> c({2, 2}), da({2, 3}), db({3, 2});
  reference::matmul<T>(a, b, c);
  expect(c, {58, 64, 139, 154});
  reference::matmul_backward<T>(a, b, dc, da, db);
  expect(da, {-1, -1, -1, 38, 48, 58});
  expect(db, {9, 11, 12, 13, 15, 15});
}

TYPED_TEST(Golden, MatmulNt) {
  using T = TypeParam;
  Tensor<T> a({2, 3}, {1, 2, 3, 4, 5, 6}), b({2, 3}, {7, 9, 11, 8, 10, 12}), dc({2, 2}, {1, -1, 2, 3});
  Tensor<T> c({2, 2}), da({2, 3}), db({2, 3});
  reference::matmul_nt<T>(a, b, c);
  expect(c, {58, 64, 139, 154});
  reference::matmul_nt_backward<T>(a, b, dc, da, db);
  expect(da, {-1, -1, -1, 38, 48, 58});
  expect(db, {9, 12, 15, 11, 13, 15});
}

TYPED_TEST(Golden, MatmulTn) {
  using T = TypeParam;
  Tensor<T> a({3, 2}, {1, 4, 2, 5, 3, 6}), b({3, 2}, {7, 8, 9, 10, 11, 12}), dc({2, 2}, {1, -1, 2, 3});
  Tensor<T> c({2, 2}), da({3, 2}), db({3, 2});
  reference::matmul_tn<T>(a, b, c);
  expect(c, {58, 64, 139, 154});
  reference::matmul_tn_backward<T>(a, b, dc, da, db);
  expect(da, {-1, 38, -1, 48, -1, 58});
  expect(db, {9, 11, 12, 13, 15, 15});
}

TYPED_TEST(Golden, Gemv) {
  using T = TypeParam;
  Tensor<T> a({2, 3}, {1, 2, 3, 4, 5, 6}), x({3}, {7, 8, 9}), dy({2}, {10, -1});
  Tensor<T> y({2}), da({2, 3}), dx({3});
  reference::gemv<T>(a, x, y);
  expect(y, {50, 122});
  reference::gemv_backward<T>(a, x, dy, da, dx);
  expect(da, {70, 80, 90, -7, -8, -9});
  expect(dx, {6, 15, 24});
}

TYPED_TEST(Golden, Transpose) {
  using T = TypeParam;
  Tensor<T> src({2, 3}, {1, 2, 3, 4, 5, 6}), ddst({3, 2}, {1, 4, 2, 5, 3, 6}), dst({3, 2}), dsrc({2, 3});
  reference::transpose<T>(src, dst);
  expect(dst, {1, 4, 2, 5, 3, 6});
  reference::transpose_backward<T>(src, ddst, dsrc);
  expect(dsrc, {1, 2, 3, 4, 5, 6});
}

/// Rows of 3 spaced by 4, copied to columns: gaps stay unchanged.
TYPED_TEST(Golden, TensorLayout) {
  using T = TypeParam;
  Tensor<T> src({2, 4}, {1, 2, 3, -1, 4, 5, 6, -1}), dst({6}), dsrc({2, 4});
  const View<const T> padded(src.values.data(), {2, 3}, {4, 1});
  reference::tensor_layout<T>(padded, View<T>(dst.values.data(), {2, 3}, {1, 2}));
  expect(dst, {1, 4, 2, 5, 3, 6});
  reference::tensor_layout_backward<T>(padded, View<const T>(dst.values.data(), {2, 3}, {1, 2}),
                                       View<T>(dsrc.values.data(), {2, 3}, {4, 1}));
  expect(dsrc, {1, 2, 3, 99, 4, 5, 6, 99});
}

/// A null gradient, and empty sums.
TYPED_TEST(Golden, NullGradientsAndEmptySums) {
  using T = TypeParam;
  Tensor<T> a({2, 0}), b({0, 2}), c({2, 2}), dc({2, 2}, {1, 2, 3, 4});
  reference::matmul<T>(a, b, c);
  expect(c, {0, 0, 0, 0});
  Tensor<T> p({1, 1}, {3}), q({1, 1}, {5}), r({1, 1}, {2}), dp({1, 1}), dq({1, 1});
  reference::matmul_backward<T>(p, q, r, View<T>(), dq);
  reference::matmul_backward<T>(p, q, r, dp, View<T>());
  expect(dp, {10});
  expect(dq, {6});
}

}  // namespace
}  // namespace assay::numbers::golden_test
