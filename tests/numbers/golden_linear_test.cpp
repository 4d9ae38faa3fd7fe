// Linear layers and their adapters, worked out by hand on small integers: x = (1, 2, -1), two outputs, rank 1 or 2.
#include <gtest/gtest.h>

#include <vector>

#include "reference/linear.hpp"
#include "reference/lora_linear.hpp"
#include "reference/lora_linear_backward.hpp"
#include "reference/lora_merge.hpp"
#include "reference/lora_unmerge.hpp"

namespace assay::numbers::golden_linear_test {
namespace {

using Values = std::vector<double>;
View<const double> in(const Values& v, const Shape& shape) { return {v.data(), shape}; }
View<double> out(Values& v, const Shape& shape) { return {v.data(), shape}; }

const Values kX{1, 2, -1}, kWeight{1, 0, 2, -1, 3, 1}, kBias{10, 20};

TEST(GoldenLinear, WithAndWithoutBias) {
  // x · Wᵀ = (1 - 2, -1 + 6 - 1) = (-1, 4).
  Values y(2);
  reference::linear<double>(in(kX, {1, 3}), in(kWeight, {2, 3}), in(kBias, {1, 2}), out(y, {1, 2}));
  EXPECT_EQ(y, (Values{9, 24}));
  reference::linear<double>(in(kX, {1, 3}), in(kWeight, {2, 3}), View<const double>(nullptr, {0, 2}), out(y, {1, 2}));
  EXPECT_EQ(y, (Values{-1, 4}));
}

TEST(GoldenLinear, Gradients) {
  // dy = (1, -2): dx = dy · W, dW = dyᵀ · x, dbias = dy.
  const Values dy{1, -2};
  Values dx(3), dweight(6), dbias(2);
  reference::linear_backward<double>(in(kX, {1, 3}), in(kWeight, {2, 3}), in(kBias, {1, 2}), in(dy, {1, 2}),
                                     out(dx, {1, 3}), out(dweight, {2, 3}), out(dbias, {1, 2}));
  EXPECT_EQ(dx, (Values{3, -6, 0}));
  EXPECT_EQ(dweight, (Values{1, 2, -1, -2, -4, 2}));
  EXPECT_EQ(dbias, dy);
}

// An adapter of rank 2 with alpha = 6, so a scale of 3: A = (1 1 0; 2 0 -1), B = (1 -1; 0 2).
const Values kA{1, 1, 0, 2, 0, -1}, kB{1, -1, 0, 2};

TEST(GoldenLora, Forward) {
  // t = (1 + 2, 2 + 1) = (3, 3); t · Bᵀ = (0, 6); y = (9, 24) + 3 (0, 6).
  Values y(2), t(2);
  reference::lora_linear<double>(in(kX, {1, 3}), in(kWeight, {2, 3}), in(kBias, {1, 2}), in(kA, {2, 3}), in(kB, {2, 2}),
                                 out(y, {1, 2}), out(t, {1, 2}), 6);
  EXPECT_EQ(t, (Values{3, 3}));
  EXPECT_EQ(y, (Values{9, 42}));
}

TEST(GoldenLora, Gradients) {
  // dy = (1, -2): g = dy · B = (1, -5); dx = (3, -6, 0) + 3 (1 - 10, 1, 5) = (-24, -3, 15);
  // dA = 3 gᵀ · x = (3 6 -3; -15 -30 15); dB = 3 dyᵀ · t = (9 9; -18 -18).
  const Values t{3, 3}, dy{1, -2};
  Values dx(3), da(6), db(4);
  reference::lora_linear_backward<double>(in(kX, {1, 3}), in(kWeight, {2, 3}), in(kA, {2, 3}), in(kB, {2, 2}),
                                          in(t, {1, 2}), in(dy, {1, 2}), out(dx, {1, 3}), out(da, {2, 3}),
                                          out(db, {2, 2}), 6);
  EXPECT_EQ(dx, (Values{-24, -3, 15}));
  EXPECT_EQ(da, (Values{3, 6, -3, -15, -30, 15}));
  EXPECT_EQ(db, (Values{9, 9, -18, -18}));
}

TEST(GoldenLora, MergedAndTakenOutAgain) {
  // B · A = (1 - 2, 1, 1; 4, 0, -2); W + 3 B · A = (-2 3 5; 11 3 -5), and x · its transpose + bias is y above:
  // -2 + 6 - 5 + 10 = 9, 11 + 6 + 5 + 20 = 42.
  Values merged(6), weight(6);
  reference::lora_merge<double>(in(kWeight, {2, 3}), in(kA, {2, 3}), in(kB, {2, 2}), out(merged, {2, 3}), 6);
  EXPECT_EQ(merged, (Values{-2, 3, 5, 11, 3, -5}));
  reference::lora_unmerge<double>(in(merged, {2, 3}), in(kA, {2, 3}), in(kB, {2, 2}), out(weight, {2, 3}), 6);
  EXPECT_EQ(weight, kWeight);
}

}  // namespace
}  // namespace assay::numbers::golden_linear_test
