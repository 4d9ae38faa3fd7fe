// One case of each operation on rows, worked out in 50 decimal digits by Python's decimal module from the definitions:
// rmsnorm with eps = 1/4, softmax of 1, 2, 3, SiLU at 1 and -2, and rotations by 3 and 3/100 radians.
#include <gtest/gtest.h>

#include <vector>

#include "reference/rmsnorm.hpp"
#include "reference/rmsnorm_backward.hpp"
#include "reference/rmsnorm_eps_backward.hpp"
#include "reference/rope.hpp"
#include "reference/silu_mul.hpp"
#include "reference/silu_mul_backward.hpp"
#include "reference/softmax.hpp"
#include "reference/softmax_backward.hpp"

namespace assay::numbers::golden_rows_test {
namespace {

using Values = std::vector<double>;
View<const double> in(const Values& v, const Shape& shape) { return {v.data(), shape}; }
View<double> out(Values& v, const Shape& shape) { return {v.data(), shape}; }

void expect(const Values& got, const Values& want) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], 0x1p-50) << "element " << i;
}

TEST(GoldenRows, Rmsnorm) {
  const Shape matrix{1, 3}, vector{3}, rows{1};
  const Values x{1, -2, 3}, weight{2, 1, 0.5}, dy{1, 2, -1};
  Values y(3), rrms(1), dx(3), dweight(3);
  reference::rmsnorm<double>(in(x, matrix), in(weight, vector), out(y, matrix), out(rrms, rows), 0.25);
  expect(rrms, {0.45098761680169801});
  expect(y, {0.90197523360339462, -0.90197523360339462, 0.67648142520254597});
  reference::rmsnorm_backward<double>(in(x, matrix), in(weight, vector), in(rrms, rows), in(dy, matrix),
                                      out(dx, matrix), out(dweight, vector));
  const Values want_dx{1.0089892443698991, 0.68794721207038573, 0.095548223898664685};
  const Values want_dweight{0.45098761680169801, -1.8039504672067893, -1.3529628504050919};
  expect(dx, want_dx);
  expect(dweight, want_dweight);
  Values own_dx(3), own_dweight(3);
  reference::rmsnorm_eps_backward<double>(in(x, matrix), in(weight, vector), in(dy, matrix), out(own_dx, matrix),
                                          out(own_dweight, vector), 0.25);
  expect(own_dx, want_dx);
  expect(own_dweight, want_dweight);
}

TEST(GoldenRows, Softmax) {
  const Shape matrix{1, 3};
  const Values x{1, 2, 3}, dy{1, 2, -1};
  Values y(3), dx(3);
  reference::softmax<double>(in(x, matrix), out(y, matrix));
  expect(y, {0.090030573170380458, 0.24472847105479765, 0.66524095577482189});
  reference::softmax_backward<double>(in(y, matrix), in(dy, matrix), out(dx, matrix));
  expect(dx, {0.097751004569463569, 0.51044325048958757, -0.60819425505905114});
}

TEST(GoldenRows, SoftmaxOfMaskedEntriesAndRows) {
  const double masked = -std::numeric_limits<double>::infinity();
  const Shape matrix{2, 2};
  const Values x{masked, 5, masked, masked};
  Values y(4);
  reference::softmax<double>(in(x, matrix), out(y, matrix));
  expect(y, {0, 1, 0, 0});
}

TEST(GoldenRows, SiluMul) {
  const Shape matrix{1, 2};
  const Values gate{1, -2}, up{3, 5}, dy{2, -1};
  Values y(2), dgate(2), dup(2);
  reference::silu_mul<double>(in(gate, matrix), in(up, matrix), out(y, matrix));
  expect(y, {3 * 0.73105857863000488, 5 * -0.23840584404423511});
  reference::silu_mul_backward<double>(in(gate, matrix), in(up, matrix), in(dy, matrix), out(dgate, matrix),
                                       out(dup, matrix));
  expect(dgate, {6 * 0.92767051187148673, -5 * -0.090784248784895479});
  expect(dup, {2 * 0.73105857863000488, 0.23840584404423511});
}

TEST(GoldenRows, RopeOfBothLayouts) {
  // d = 4, theta = 10^4: angles 3 and 3/100 at position 3. x = 1, 10, 100, 1000.
  const double c0 = -0.98999249660044546, s0 = 0.14112000805986722, c1 = 0.99955003374898752, s1 = 0.029995500202495661;
  const Shape head{1, 1, 4};
  const Values x{1, 10, 100, 1000}, third{3};
  Values y(4), back(4);
  reference::rope<double>(in(x, head), in(third, {1}), out(y, head), 10000, 1, 0);
  for (std::size_t i = 0; i < 4; ++i)
    EXPECT_NEAR(y[i], (Values{c0 - 10 * s0, 10 * c0 + s0, 100 * c1 - 1000 * s1, 1000 * c1 + 100 * s1})[i], 0x1p-40);
  reference::rope<double>(in(x, head), in(third, {1}), out(y, head), 10000, 0, 0);
  for (std::size_t i = 0; i < 4; ++i)
    EXPECT_NEAR(y[i], (Values{c0 - 100 * s0, 10 * c1 - 1000 * s1, 100 * c0 + s0, 1000 * c1 + 10 * s1})[i], 0x1p-40);
  reference::rope_backward<double>(in(y, head), in(third, {1}), out(back, head), 10000, 0, 0);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(back[i], x[i], 0x1p-40);
}

}  // namespace
}  // namespace assay::numbers::golden_rows_test
