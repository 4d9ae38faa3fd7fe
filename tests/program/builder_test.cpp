// What builders refuse, and what they derive from shapes.
#include "program/builder.hpp"

#include <gtest/gtest.h>

#include "core/errors.hpp"
#include "program/operations.hpp"
#include "refusal.hpp"

namespace assay::program::builder_test {
namespace {

/// The sentence with which a call is refused.
TEST(Builders, DimsFollowFromShapes) {
  Builder b;
  const Value x = b.input("x", {3, 5}), w = b.parameter("w", {7, 5});
  EXPECT_EQ(b.shape(matmul_nt(b, x, w)), (Shape{3, 7}));
  EXPECT_EQ(b.shape(embedding_backward(b, b.input("ids", {3}, DType::i32), x, 11)), (Shape{11, 5}));
}

TEST(Builders, RefuseWhatDoesNotFit) {
  Builder b;
  const Value x = b.input("x", {3, 5}), w = b.parameter("w", {5, 7}), flat = b.input("flat", {15});
  EXPECT_NE(refusal([&] { matmul_nt(b, x, w); }).find("k is 5 by a [3, 5], and 7 by b [5, 7]"), std::string::npos);
  EXPECT_NE(refusal([&] { matmul(b, flat, w); }).find("a has shape [15], and the contract wants [m, k]"),
            std::string::npos);
  EXPECT_NE(refusal([&] { embedding(b, x, w); }).find("the contract wants ids in i32"), std::string::npos);
  EXPECT_NE(refusal([&] { b.reshape(x, {4, 4}); }).find("cannot be seen as [4, 4]"), std::string::npos);
  EXPECT_NE(refusal([&] { b.rows(x, 2, 4); }).find("do not exist"), std::string::npos);
  EXPECT_NE(refusal([&] { b.parameter("w", {1}); }).find("already"), std::string::npos);
  EXPECT_NE(refusal([&] {
              b.frozen_stack(std::vector<NamedDim>{{"w", 1}}, 4, WeightFormat::q4_k);
            }).find("already"),
            std::string::npos);
  EXPECT_NE(refusal([&] {
              b.frozen_stack(std::vector<NamedDim>{{"s", 1}}, 4, WeightFormat::nf4);
            }).find("scales apart"),
            std::string::npos);
  EXPECT_NE(refusal([&] { b.call("scale", std::vector{x}); }).find("the parameter alpha is not given"),
            std::string::npos);
  EXPECT_NE(refusal([&] { b.call("matmul", std::vector{x}); }).find("it reads 2 tensors and was given 1"),
            std::string::npos);
  EXPECT_NE(refusal([&] { matmul(b, Value{}, w); }).find("no value of this program"), std::string::npos);
}

TEST(Builders, RefuseToReadWhatALaterStepHasChanged) {
  Builder b;
  const Value x = b.input("x", {2, 3}), sum = b.state("sum", {4, 3});
  const Value upper = b.rows(sum, 0, 2), lower = b.rows(sum, 2, 4);
  const Value changed = accumulate(b, upper, x, 1);
  EXPECT_NE(refusal([&] { scale(b, upper, 2); }).find("as it was before a later step changed it"), std::string::npos);
  EXPECT_NE(refusal([&] { scale(b, sum, 2); }).find("as it was before"), std::string::npos)
      << "a part of it has changed";
  scale(b, changed, 2);
  scale(b, lower, 2);
  scale(b, b.latest(sum), 2);
  EXPECT_NE(refusal([&] { accumulate(b, x, changed, 1); }).find("which is an input"), std::string::npos);
  EXPECT_NE(refusal([&] { accumulate(b, b.zeros({2, 3}), x, 1); }).find("constant"), std::string::npos);
}

TEST(Builders, LabelsTellStepsApart) {
  Builder b;
  const Value x = b.input("x", {2, 3});
  const Builder::Scope layer(b, "layers.0");
  scale(b, x, 2);
  scale(b, x, 2);
  EXPECT_EQ(b.program().steps[0].label, "layers.0.scale");
  EXPECT_EQ(b.program().steps[1].label, "layers.0.scale.1");
}

}  // namespace
}  // namespace assay::program::builder_test
