// One case of each reference worked out by hand: element-wise operations, pooling and embedding.
#include <gtest/gtest.h>

#include <vector>

#include "reference/accumulate.hpp"
#include "reference/bias_add.hpp"
#include "reference/bias_add_backward.hpp"
#include "reference/cache_append.hpp"
#include "reference/column_sum.hpp"
#include "reference/column_sum_backward.hpp"
#include "reference/embedding.hpp"
#include "reference/embedding_backward.hpp"
#include "reference/fill.hpp"
#include "reference/mean_pool.hpp"
#include "reference/mean_pool_backward.hpp"
#include "reference/residual_add.hpp"
#include "reference/scale.hpp"
#include "reference/silu.hpp"
#include "reference/silu_backward.hpp"

namespace assay::numbers::golden_elementwise_test {
namespace {

using Values = std::vector<double>;

struct Tensor {
  Values values;
  Shape shape;

  Tensor(const Shape& s, Values v) : values(std::move(v)), shape(s) {}
  explicit Tensor(const Shape& s) : values(static_cast<std::size_t>(s.size()), 99), shape(s) {}
  operator View<double>() { return {values.data(), shape}; }
  operator View<const double>() { return {values.data(), shape}; }
};

TEST(GoldenElementwise, Sums) {
  Tensor x({2, 3}, {1, 2, 3, 4, 5, 6}), r({2, 3}, {2, -4, 6, 8, 0, 10}), y({2, 3}), dx({2, 3}), dr({2, 3});
  reference::residual_add<double>(x, r, y, 0.5);
  EXPECT_EQ(y.values, (Values{2, 0, 6, 8, 5, 11}));
  reference::residual_add_backward<double>(x, r, y, dx, dr, 0.5);
  EXPECT_EQ(dx.values, y.values);
  EXPECT_EQ(dr.values, (Values{1, 0, 3, 4, 2.5, 5.5}));
  reference::accumulate<double>(x, r, -1);
  EXPECT_EQ(x.values, (Values{-1, 6, -3, -4, 5, -4}));
  reference::scale<double>(r, y, -1.5);
  EXPECT_EQ(y.values, (Values{-3, 6, -9, -12, 0, -15}));
}

TEST(GoldenElementwise, Bias) {
  Tensor x({2, 3}, {1, 2, 3, 4, 5, 6}), bias({3}, {10, 20, 30}), y({2, 3}), dx({2, 3}), dbias({3});
  reference::bias_add<double>(x, bias, y);
  EXPECT_EQ(y.values, (Values{11, 22, 33, 14, 25, 36}));
  reference::bias_add_backward<double>(x, dx, dbias);
  EXPECT_EQ(dx.values, x.values);
  EXPECT_EQ(dbias.values, (Values{5, 7, 9}));
}

TEST(GoldenElementwise, ColumnSum) {
  Tensor x({2, 3}, {1, 2, 3, 4, 5, 6}), y({3}), dx({2, 3}), none({0, 3}, {});
  reference::column_sum<double>(x, y);
  EXPECT_EQ(y.values, (Values{5, 7, 9}));
  reference::column_sum_backward<double>(y, dx);
  EXPECT_EQ(dx.values, (Values{5, 7, 9, 5, 7, 9}));
  reference::column_sum<double>(none, y);
  EXPECT_EQ(y.values, (Values{0, 0, 0}));
}

TEST(GoldenElementwise, Fill) {
  Tensor y({2, 2});
  reference::fill<double>(y, 0.5);
  EXPECT_EQ(y.values, (Values{0.5, 0.5, 0.5, 0.5}));
}

// Two sequences, two new rows of one head, three places.
TEST(GoldenElementwise, CacheAppend) {
  Tensor x({2, 2, 1, 1}, {1, 2, 3, 4}), lengths({2}, {1, 0}), cache({2, 3, 1, 1});
  reference::cache_append<double>(x, lengths, cache);
  EXPECT_EQ(cache.values, (Values{99, 1, 2, 3, 4, 99}));
}

// sigmoid(1) = e / (1 + e) = 0.73105857863000487925..., sigmoid(ln 3) = 3/4: DLMF 4.2 for e and ln 3.
TEST(GoldenElementwise, Silu) {
  const double ln3 = 1.0986122886681098;
  Tensor x({2, 2}, {0, 1, ln3, -ln3}), y({2, 2}), dx({2, 2}), dy({2, 2}, {2, 1, 1, 4});
  reference::silu<double>(x, y);
  EXPECT_EQ(y.values[0], 0);
  EXPECT_DOUBLE_EQ(y.values[1], 0.7310585786300049);
  EXPECT_DOUBLE_EQ(y.values[2], 0.75 * ln3);
  EXPECT_DOUBLE_EQ(y.values[3], -0.25 * ln3);
  reference::silu_backward<double>(x, dy, dx);
  EXPECT_EQ(dx.values[0], 2 * 0.5);
  EXPECT_DOUBLE_EQ(dx.values[1], 0.7310585786300049 + 0.19661193324148185);
  EXPECT_DOUBLE_EQ(dx.values[2], 0.75 + ln3 * 0.75 * 0.25);
  EXPECT_DOUBLE_EQ(dx.values[3], 4 * (0.25 - ln3 * 0.75 * 0.25));
}

TEST(GoldenElementwise, MeanPool) {
  Tensor x({2, 3, 2}, {1, 2, 3, 4, 99, 99, 5, 6, 7, 8, 9, 13}), lengths({2}, {2, 3}), y({2, 2}), dx({2, 3, 2});
  reference::mean_pool<double>(x, lengths, y);
  EXPECT_EQ(y.values, (Values{2, 3, 7, 9}));
  reference::mean_pool_backward<double>(lengths, Tensor({2, 2}, {2, 4, 3, 6}), dx);
  EXPECT_EQ(dx.values, (Values{1, 2, 1, 2, 0, 0, 1, 2, 1, 2, 1, 2}));
}

TEST(GoldenElementwise, Embedding) {
  Tensor ids({3}, {2, 0, 2}), table({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8}), y({3, 2}), dtable({4, 2});
  reference::embedding<double>(ids, table, y);
  EXPECT_EQ(y.values, (Values{5, 6, 1, 2, 5, 6}));
  reference::embedding_backward<double>(ids, Tensor({3, 2}, {1, 2, 3, 4, 10, 20}), dtable);
  EXPECT_EQ(dtable.values, (Values{3, 4, 0, 0, 11, 22, 0, 0}));
}

}  // namespace
}  // namespace assay::numbers::golden_elementwise_test
