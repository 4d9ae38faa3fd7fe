// Losses and training steps worked out by hand. The oracle's own error is a millionth of the derived bound, so the
// closed form must agree that closely.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/bounded.hpp"
#include "reference/adamw_step.hpp"
#include "reference/bce_with_logits.hpp"
#include "reference/bce_with_logits_backward.hpp"
#include "reference/clip_grad_norm.hpp"
#include "reference/cross_entropy.hpp"
#include "reference/cross_entropy_backward.hpp"
#include "reference/global_grad_norm.hpp"

namespace assay::numbers::losses_golden_test {
namespace {

struct Tensor {
  std::vector<Bounded> values;
  Shape shape;

  explicit Tensor(Shape s) : values(static_cast<std::size_t>(s.size())), shape(s) {}
  Tensor(Shape s, const std::vector<float>& v) : shape(s) {
    for (float x : v) values.push_back(Bounded::input(x));
  }
  operator View<Bounded>() { return {values.data(), shape}; }
  operator View<const Bounded>() { return {values.data(), shape}; }
};

void expect(const Tensor& got, const std::vector<double>& want) {
  ASSERT_EQ(got.values.size(), want.size());
  for (std::size_t i = 0; i < want.size(); ++i)
    EXPECT_LE(std::fabs(got.values[i].value - want[i]), 0x1p-20 * got.values[i].error)
        << "element " << i << ": got " << got.values[i].value << ", want " << want[i];
}

/// Four equal logits: each has probability 1/4 and the loss log 4, weighted by 2 and 6 (classes 1 and 3).
TEST(GoldenLosses, CrossEntropyOfEqualLogits) {
  for (double reduction : {1, 2}) {
    Tensor logits({2, 4}, {5, 5, 5, 5, -1, -1, -1, -1}), targets({2}, {1, 3}), weights({4}, {1, 2, 4, 6});
    Tensor loss({2}), total({1}), logsumexp({2}), normalizer({1}), dlogits({2, 4});
    reference::cross_entropy<Bounded>(logits, targets, weights, loss, total, logsumexp, normalizer, reduction);
    const double log4 = std::log(4.0);
    expect(loss, {2 * log4, 6 * log4});
    expect(total, {reduction == 1 ? log4 : 8 * log4});
    expect(logsumexp, {5 + log4, -1 + log4});
    EXPECT_EQ(normalizer.values[0].value, reduction == 1 ? 8 : 1);
    Tensor dloss({2}, {0, 1}), dtotal({1}, {4});
    reference::cross_entropy_backward<Bounded>(logits, targets, weights, logsumexp, normalizer, dloss, dtotal, dlogits);
    const double share = reduction == 1 ? 0.5 : 4, a = 2 * share / 4, b = 6 * (1 + share) / 4;
    expect(dlogits, {a, -3 * a, a, a, b, b, b, -3 * b});
  }
}

/// softplus(0) = log 2 and sigmoid(0) = 1/2; a wrong logit of 30 or -30 costs 30 + log(1 + exp(-30)).
TEST(GoldenLosses, BinaryCrossEntropyOfZeroAndOfCertainty) {
  Tensor logits({1, 4}, {0, 0, 30, -30}), targets({1, 4}, {0.25F, 1, 0, 1}), weight({4}, {2, 3, 1, 5}), loss({1});
  reference::bce_with_logits<Bounded>(logits, targets, weight, loss);
  const double log2 = std::log(2.0), far = 30 + std::log1p(std::exp(-30.0));
  expect(loss, {((0.25 * 2 + 0.75) * log2 + 3 * log2 + far + 5 * far) / 4});
  Tensor dloss({1}, {8}), dlogits({1, 4});
  reference::bce_with_logits_backward<Bounded>(logits, targets, weight, dloss, dlogits);
  const double near = 1 / (1 + std::exp(-30.0));
  expect(dlogits, {2 * (0.75 - 0.25 * 2) / 2, -3.0, 2 * near, -10 * near});
}

/// From zero moments the first step is lr g / (|g| + eps), with constants rounded to float32 first.
TEST(GoldenLosses, FirstStepOfAdamw) {
  const double lr = 0x1p-10, decay = 1 - 0x1p-10 * 0x1p-6, eps = 0x1p-20;
  Tensor p({3}, {1, -2, 0}), m({3}, {0, 0, 0}), v({3}, {0, 0, 0}), g({3}, {4, -0x1p-20F, 0}), rounded({1, 3});
  reference::adamw_step<Bounded>(p, m, v, g, rounded, lr, 0.5, 0.75, eps, 0x1p-6, 1);
  for (const Tensor* of : {&p, &rounded}) expect(*of, {decay - lr * 4 / (4 + eps), -2 * decay + lr / 2, 0});
  expect(m, {2, -0x1p-21, 0});
  expect(v, {4, 0x1p-42, 0});
}

TEST(GoldenLosses, NormsOfPythagoreanTriples) {
  Tensor g({4}, {3, 0, -4, 12}), norm({1});
  reference::global_grad_norm<Bounded>(g, norm);
  expect(norm, {13});
  Tensor clipped({2}, {3, -4}), kept({2}, {3, -4}), before({1});
  reference::clip_grad_norm<Bounded>(clipped, before, 2.5, 0);
  expect(before, {5});
  expect(clipped, {1.5, -2});
  reference::clip_grad_norm<Bounded>(kept, before, 6, 0);
  expect(kept, {3, -4});
}

}  // namespace
}  // namespace assay::numbers::losses_golden_test
