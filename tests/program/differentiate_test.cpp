// Derivatives of programs: sums over paths, views, refusals. transformer_test.cpp has those of whole blocks.
#include "program/differentiate.hpp"

#include <gtest/gtest.h>

#include <functional>

#include "blocks.hpp"
#include "core/errors.hpp"

namespace assay::program::differentiate_test {
namespace {

using falsify::Execution;

TEST(Derivatives, AddUpOverRunsAndTemporariesDoNot) {
  const BlockCase c = block_case("lora_on_all");
  const Block block(c);  // each parameter is used once
  const Differentiated d = differentiate(block.builder.program(), std::vector{block.y});
  const Plan where = plan(d.program);
  Execution<double> run(d.program, where, std::nan(""));
  set_all(run, d.program, c);
  run.run();
  std::vector<std::vector<double>> once;
  for (const Value g : d.gradients) once.push_back(read(run[g]));
  run.run();
  for (std::size_t i = 0; i < once.size(); ++i) {
    const std::vector<double> twice = read(run[d.gradients[i]]);
    for (std::size_t e = 0; e < twice.size(); ++e) EXPECT_EQ(twice[e], 2 * once[i][e]) << i;
  }
}

/// The derivative of y by x where y = f(x), upstream ones.
std::vector<double> derivative(const std::function<Value(Builder&, Value)>& f, const Shape& shape,
                               const std::vector<double>& at) {
  Builder b;
  const Value x = b.input("x", shape), y = f(b, x);
  b.output(y);
  const Value wanted[] = {x};
  const Differentiated d = differentiate(b.program(), std::vector{y}, wanted);
  const Plan where = plan(d.program);
  Execution<double> run(d.program, where, std::nan(""));
  write(run[x], at);
  write(run[d.upstream[0]], std::vector<double>(static_cast<std::size_t>(d.program[y].shape.size()), 1));
  run.run();
  return read(run[d.gradients[0]]);
}

TEST(Derivatives, AValueThatIsUsedSeveralTimesGetsTheSum) {
  // y = 2x + 3x + x: a node reached by three paths is propagated once.
  const auto f = [](Builder& b, Value x) {
    const Value h = scale(b, x, 1);
    return residual_add(b, residual_add(b, scale(b, h, 2), scale(b, h, 3), 1), h, 1);
  };
  EXPECT_EQ(derivative(f, {2, 2}, {1, 2, 3, 4}), std::vector<double>(4, 6));
  const auto chain = [](Builder& b, Value x) {  // 2^4 paths
    for (int i = 0; i < 4; ++i) x = residual_add(b, x, x, 1);
    return x;
  };
  EXPECT_EQ(derivative(chain, {1, 1}, {1}), std::vector<double>{16});
}

/// Each step has one backward call whatever the number of paths, which doubles with each sum.
TEST(Derivatives, TakeEachStepOnce) {
  const auto backward_steps = [](int depth) {
    Builder b;
    const Value x = b.input("x", {2, 3});
    Value y = x;
    for (int i = 0; i < depth; ++i) {  // a diamond of two products, each with a step of its own
      const Value left = scale(b, y, 2), right = scale(b, y, 3);
      y = residual_add(b, left, right, 1);
    }
    const Differentiated d = differentiate(b.program(), std::vector{y}, std::vector{x});
    std::map<std::string, int> of_step;
    for (std::size_t s = b.program().steps.size(); s < d.program.steps.size(); ++s) {
      const Step& step = d.program.steps[s];
      if (step.label.starts_with("backward.")) ++of_step[step.label.substr(0, step.label.rfind('.'))];
    }
    for (const auto& [step, count] : of_step) EXPECT_EQ(count, 1) << step;
    return d.program.steps.size() - b.program().steps.size();
  };
  const std::size_t one = backward_steps(1), two = backward_steps(2);
  for (int depth = 3; depth <= 12; ++depth)
    EXPECT_EQ(backward_steps(depth), one + static_cast<std::size_t>(depth - 1) * (two - one)) << depth;
}

/// N18: of a frozen projection the bias alone trains, and the backward pass computes nothing else.
TEST(Derivatives, OfABiasOnAFrozenProjection) {
  Builder b;
  const Value x = b.input("x", {3, 2}), weight = b.parameter("weight", {2, 2}, false),
              bias = b.parameter("bias", {1, 2});
  const Value y = linear(b, x, weight, bias);
  b.output(y);
  const Differentiated d = differentiate(b.program(), std::vector{y});
  ASSERT_EQ(d.gradients.size(), 1U);
  const auto backward = std::span(d.program.steps).subspan(b.program().steps.size());
  ASSERT_EQ(backward.size(), 2U);
  EXPECT_EQ(backward[0].op->name, "bias_add_backward");
  EXPECT_EQ(backward[1].op->name, "accumulate");
  const Plan where = plan(d.program);
  Execution<double> run(d.program, where, std::nan(""));
  write(run[x], {1, 2, 3, 4, 5, 6});
  write(run[weight], {1, 0, 2, 1});
  write(run[bias], {10, 20});
  write(run[d.upstream[0]], {1, 2, 3, 4, 5, 6});
  for (const double times : {1, 2}) {
    run.run();
    EXPECT_EQ(read(run[y]), (std::vector<double>{11, 24, 13, 30, 15, 36}));
    EXPECT_EQ(read(run[d.gradients[0]]), (std::vector<double>{9 * times, 12 * times}));
  }
}

TEST(Derivatives, PassThroughViews) {
  const auto parts = [](Builder& b, Value x) {  // rows 0..1 times 2, rows 1..3 times 5: row 1 gets both
    const Value upper = scale(b, b.rows(x, 0, 2), 2), lower = scale(b, b.rows(x, 1, 3), 5);
    return residual_add(b, upper, lower, 1);
  };
  EXPECT_EQ(derivative(parts, {3, 1}, {1, 2, 3}), (std::vector<double>{2, 7, 5}));
  const auto inner = [&](Builder& b, Value x) { return parts(b, b.reshape(scale(b, x, 3), {3, 1})); };
  EXPECT_EQ(derivative(inner, {1, 3}, {1, 2, 3}), (std::vector<double>{6, 21, 15}));
}

TEST(Derivatives, ReachTheOriginalBehindATranspose) {
  Builder b;
  const Value a = b.parameter("a", {2, 3}), x = b.input("x", {1, 3});
  const Value y = matmul(b, x, transpose(b, a));
  b.output(y);
  const Differentiated d = differentiate(b.program(), std::vector{y});
  const Plan where = plan(d.program);
  Execution<double> run(d.program, where, std::nan(""));
  write(run[a], {.1, .2, .3, .4, .5, .6});
  write(run[x], {1, 2, 3});
  write(run[d.upstream[0]], {1, 1});
  run.run();
  EXPECT_EQ(read(run[d.gradients[0]]), (std::vector<double>{1, 2, 3, 1, 2, 3}));
}

TEST(Derivatives, SeveralOutputsOfAStep) {
  // cross_entropy gives losses and their total: where one alone has an upstream gradient, the other's is zero.
  Builder b;
  const Value logits = b.parameter("logits", {2, 3}), targets = b.input("targets", {2}, DType::i32),
              weights = b.input("weights", {3});
  const auto out = cross_entropy(b, logits, targets, weights, 1);
  b.output(out.total);
  const Differentiated d = differentiate(b.program(), std::vector{out.total});
  const Plan where = plan(d.program);
  Execution<double> run(d.program, where, std::nan(""));
  write(run[logits], {0, 0, 0, 0, 0, 0});
  write(run[targets], {0, 2});
  write(run[weights], {1, 1, 1});
  write(run[d.upstream[0]], {1});
  run.run();
  const std::vector<double> gradient = read(run[d.gradients[0]]);
  // Of equal logits: (1/3 - [j = y]) / 2, three values with a few roundings of 2^-53 each.
  EXPECT_NEAR(gradient[0], -1.0 / 3, 8 * 0x1p-53);
  EXPECT_NEAR(gradient[1], 1.0 / 6, 8 * 0x1p-53);
}

std::string refusal(const Builder& b, Value output, Value wanted) {
  try {
    differentiate(b.program(), std::vector{output}, std::vector{wanted});
  } catch (const InputError& e) {
    return e.what();
  }
  return "not refused";
}

TEST(Derivatives, RefuseALeafWithoutAPath) {
  Builder b;
  const Value x = b.input("x", {2, 2}), w = b.parameter("w", {2, 2}), other = b.parameter("other", {2, 2}),
              unused = b.parameter("unused", {2, 2});
  const Value sum = b.state("sum", {2, 2});
  const Value y = scale(b, matmul_nt(b, x, w), 2), dead = scale(b, other, 2),
              in_place = scale(b, accumulate(b, sum, other, 1), 3);
  EXPECT_NE(refusal(b, y, unused).find("unused: it has no gradient: no step reads it"), std::string::npos);
  EXPECT_NE(refusal(b, y, other)
                .find("other: it has no gradient: its path ends at scale.2 (scale), and no differentiated output"),
            std::string::npos)
      << refusal(b, y, other);
  EXPECT_NE(refusal(b, in_place, other).find("its path ends at accumulate (accumulate), which has none: it overwrites"),
            std::string::npos)
      << refusal(b, in_place, other);
  EXPECT_NE(refusal(b, y, dead).find("it is no leaf"), std::string::npos);
  EXPECT_EQ(refusal(b, y, w), "not refused");
}

std::size_t bytes_of(const Block& block, const Kept* kept) {
  return plan(differentiate(block.builder.program(), std::vector{block.y}, {}, kept).program).bytes;
}

TEST(Derivatives, ComputeLayersAgainFromTheirInputs) {
  BlockCase c = block_case("untied_loss");
  c.s = c.length = 64;
  const auto saved = [&](Index layers) {
    c.config.layers = layers;
    const Block block(c);
    const Kept kept = inputs_of_layers(block.builder.program());
    return std::pair{bytes_of(block, nullptr), bytes_of(block, &kept)};
  };
  const auto [few, few_again] = saved(4);
  const auto [more, more_again] = saved(8);
  // Parameters and their gradients grow alike; of temporaries, one matrix a layer is kept.
  const auto parameters = [&](Index layers) {
    c.config.layers = layers;
    const Block block(c);
    std::size_t bytes = 0;
    for (const Storage& storage : block.builder.program().storages)
      if (storage.kind == Kind::parameter) bytes += 2 * sizeof(float) * static_cast<std::size_t>(storage.elements);
    return bytes;
  };
  // A slot may be as large as the largest matrix of a layer.
  const std::size_t matrix = sizeof(float) * static_cast<std::size_t>(c.s * c.config.intermediate),
                    own = parameters(8) - parameters(4), grows = more_again - few_again - own;
  EXPECT_LE(grows, 4 * matrix);
  EXPECT_GT(more - few - own, 3 * grows);
}

TEST(Derivatives, KeepWhatStepsChangeInPlace) {
  Builder b;
  const Value x = b.input("x", {2, 2}), w = b.parameter("w", {2, 2});
  const Value h = scale(b, x, 2), sum = accumulate(b, h, x, 1), y = matmul_nt(b, sum, w);
  b.output(y);
  const Kept none;
  const Differentiated d = differentiate(b.program(), std::vector{y}, {}, &none);
  EXPECT_TRUE(std::ranges::none_of(d.program.steps, [](const Step& s) { return s.label.starts_with("again."); }));
}

TEST(Derivatives, AreNotTakenWhereNoneIsWanted) {
  Builder b;
  const Value x = b.input("x", {4, 3}), frozen = b.parameter("frozen", {2, 3}, false),
              trained = b.parameter("trained", {5, 2});
  const Value y = matmul_nt(b, matmul_nt(b, x, frozen), trained);
  b.output(y);
  const Differentiated d = differentiate(b.program(), std::vector{y});
  const auto backward = std::span(d.program.steps).subspan(b.program().steps.size());
  ASSERT_EQ(backward.size(), 2u) << "one product for the trained matrix, and its sum";
  EXPECT_EQ(backward[0].op->name, "matmul_tn");
  EXPECT_EQ(backward[1].op->name, "accumulate");
}

}  // namespace
}  // namespace assay::program::differentiate_test
