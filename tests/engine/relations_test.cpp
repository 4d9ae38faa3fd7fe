// Relations between two calls, and their use with kernels that declare different bits in different calls: correct
// kernels of each class pass, and the same kernels with a fault do not.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "core/half.hpp"
#include "core/nf4.hpp"
#include "falsify/engine/campaign.hpp"
#include "falsify/engine/draw.hpp"
#include "ops/bce_with_logits.hpp"
#include "ops/cross_entropy.hpp"
#include "ops/embedding_backward.hpp"
#include "ops/matmul.hpp"
#include "ops/nf4_dequantize.hpp"
#include "ops/rmsnorm.hpp"
#include "ops/softmax.hpp"

namespace assay::falsify::relations_test {
namespace {

using Body = void (*)(const Call&, Device&);

Kernel with(std::string_view like, Body run) {
  Kernel k = kernel(like);
  k.run = run;
  k.arithmetic = {};
  return k;
}

/// Returns the ids and findings of all obligations that falsify the kernel; empty if it passes.
std::string falsified(const Kernel& k, int cases = 12) {
  CampaignOptions options;
  options.cases = cases;
  options.shrink = false;
  std::string all;
  for (const ObligationResult& o : run_campaign(operation(k.op), k, options).obligations)
    if (o.counterexample) all += std::string(o.info->id) + ": " + o.counterexample->finding.message + "\n";
  return all;
}

std::mt19937& chance() {
  static std::mt19937 random(std::random_device{}());
  return random;
}
std::vector<Index> shuffled(Index n) {
  std::vector<Index> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), Index{0});
  std::shuffle(order.begin(), order.end(), chance());
  return order;
}

/// Adds four partial sums in random order, as split-K by atomics does. Loses `Lost` partial sums in a million.
template <int Lost>
void split_k(const Call& call, Device&) {
  const auto args = ops::MatmulArgs::unpack(call);
  const auto a = args.a.as<const float>(), b = args.b.as<const float>();
  const auto c = args.c.as<float>();
  const Index part = (args.k + 3) / 4;
  for (Index i = 0; i < args.m; ++i)
    for (Index j = 0; j < args.n; ++j) {
      float sum = 0;
      for (const Index which : shuffled(4)) {
        float own = 0;
        for (Index p = which * part; p < std::min((which + 1) * part, args.k); ++p) own += a(i, p) * b(p, j);
        if (static_cast<int>(chance()() % 1'000'000) >= Lost) sum += own;
      }
      c(i, j) = sum;
    }
}

TEST(Relations, SplitSumsOfAnyOrderAreRight) {
  Kernel k = with("matmul/cpu/naive", &split_k<0>);
  EXPECT_NE(falsified(k), "") << "which declares the same bits in every run";
  k.deterministic = false;
  EXPECT_EQ(falsified(k, 40), "");
  k.run = &split_k<100>;
  EXPECT_NE(falsified(k, 40), "") << "which loses a part now and then";
}

/// Adds gradients of tokens to their rows in random order, as atomics do.
void rows_by_atomics(const Call& call, Device&) {
  const auto args = ops::EmbeddingBackwardArgs::unpack(call);
  const auto dy = args.dy.as<const float>();
  for (Index r = 0; r < args.dtable.dim(0); ++r)
    for (Index j = 0; j < args.dtable.dim(1); ++j) args.dtable(r, j) = 0;
  for (const Index t : shuffled(args.dy.dim(0)))
    for (Index j = 0; j < args.dy.dim(1); ++j) args.dtable(args.ids(t), j) += dy(t, j);
}

TEST(Relations, GradientsByAtomicsAreRight) {
  Kernel k = with("embedding_backward/cpu/naive", &rows_by_atomics);
  EXPECT_NE(falsified(k), "");
  k.deterministic = false;
  EXPECT_EQ(falsified(k, 40), "");
}

/// Splits the sum of a row in two if there are few rows. `Wrong`: the second half starts one entry too late.
template <bool Wrong>
void split_where_few(const Call& call, Device&) {
  const auto args = ops::SoftmaxArgs::unpack(call);
  const auto x = args.x.as<const float>();
  const auto y = args.y.as<float>();
  const bool split = args.rows <= 8;
  for (Index i = 0; i < args.rows; ++i) {
    float largest = -INFINITY;
    for (Index j = 0; j < args.n; ++j) largest = std::fmax(largest, x(i, j));
    const float shift = largest == -INFINITY ? 0 : largest;
    float halves[2] = {0, 0};
    for (Index j = 0; j < args.n; ++j) {
      y(i, j) = std::exp(x(i, j) - shift);
      if (!(Wrong && split && args.n >= 32 && j == args.n / 2)) halves[split && j >= args.n / 2] += y(i, j);
    }
    const float sum = halves[0] + halves[1];
    for (Index j = 0; j < args.n; ++j) y(i, j) = sum == 0 ? 0 : y(i, j) / sum;
  }
}

TEST(Relations, RowsMayBeSplitWhereTheyAreFew) {
  Kernel k = with("softmax/cpu/naive", &split_where_few<false>);
  EXPECT_NE(falsified(k, 40).find("rows in a call of their own"), std::string::npos);
  k.batch_invariant = false;
  EXPECT_EQ(falsified(k, 40), "");
  k.run = &split_where_few<true>;
  EXPECT_NE(falsified(k, 40), "");
}

/// Sums one row from the first element, several rows from the last.
void order_of_the_batch(const Call& call, Device&) {
  const auto args = ops::RmsnormArgs::unpack(call);
  const auto x = args.x.as<const float>();
  for (Index i = 0; i < args.rows; ++i) {
    float squares = 0;
    for (Index j = 0; j < args.n; ++j) {
      const float v = x(i, args.rows <= 8 ? j : args.n - 1 - j);
      squares += v * v;
    }
    args.rrms(i) = 1 / std::sqrt(squares / static_cast<float>(args.n) + static_cast<float>(args.eps));
    for (Index j = 0; j < args.n; ++j) args.y.as<float>()(i, j) = x(i, j) * args.rrms(i) * args.weight(j);
  }
}

TEST(Relations, WhatAContractPinsNoKernelDeclares) {
  Kernel k = with("rmsnorm/cpu/naive", &order_of_the_batch);
  k.batch_invariant = false;
  EXPECT_NE(falsified(k, 40).find("rows in a call of their own"), std::string::npos);
}

float half(float x) { return widen(to_half(x)); }

/// Factors in binary16, and sums in binary16 if `Narrow`; if `Scaled`, the result is one ulp off for large factors.
template <bool Narrow, int Fault>
void of_halves(const Call& call, Device&) {
  const auto args = ops::MatmulArgs::unpack(call);
  const auto a = args.a.as<const float>(), b = args.b.as<const float>();
  const auto c = args.c.as<float>();
  float largest = 0;
  for (Index i = 0; i < args.m; ++i)
    for (Index p = 0; p < args.k; ++p) largest = std::fmax(largest, std::fabs(a(i, p)));
  for (Index i = 0; i < args.m; ++i)
    for (Index j = 0; j < args.n; ++j) {
      float sum = 0;
      for (Index p = 0; p < args.k; ++p) {
        const float x = half(a(i, p)), y = half(b(p, j));
        sum = Narrow ? half(sum + half(x * y)) : sum + x * y;
      }
      if (Fault == 1 && args.k > 0) sum += 1;
      if (Fault == 2 && largest > 8 && std::isfinite(sum)) sum = std::nextafter(sum, INFINITY);
      c(i, j) = sum;
    }
}

TEST(Relations, PowersOfTwoMayLeaveTheRangeOfInputs) {
  Kernel k = with("matmul/cpu/naive", &of_halves<false, 0>);
  k.arithmetic.inputs = Format::f16;
  EXPECT_EQ(falsified(k, 60), "");
  k.run = &of_halves<false, 1>;
  EXPECT_NE(falsified(k, 12), "");
  k.run = &of_halves<false, 2>;
  EXPECT_NE(falsified(k, 60).find("inputs scaled by a power of two"), std::string::npos)
      << "bits are still demanded within the range";
}

TEST(Relations, PowersOfTwoMayLeaveTheRangeOfTheAccumulator) {
  Kernel k = with("matmul/cpu/naive", &of_halves<true, 0>);
  k.arithmetic.inputs = k.arithmetic.accumulator = Format::f16;
  EXPECT_EQ(falsified(k, 60), "");
  k.run = &of_halves<true, 1>;
  EXPECT_NE(falsified(k, 12), "");
}

TEST(Relations, PowersOfTwoScaleBitsOfFloat32) {
  Kernel k = with("matmul/cpu/naive", [](const Call& call, Device& device) {
    kernel("matmul/cpu/naive").run(call, device);
    const auto args = ops::MatmulArgs::unpack(call);
    const auto a = args.a.as<const float>();
    const auto c = args.c.as<float>();
    if (args.m == 0 || args.n == 0 || args.k == 0) return;
    if (float& first = c(0, 0); std::isfinite(first) && std::fabs(a(0, 0)) > 2) first = std::nextafter(first, INFINITY);
  });
  EXPECT_NE(falsified(k, 60).find("inputs scaled by a power of two"), std::string::npos);
}

/// The loss by Liger Kernel's formula. `Wrong`: uses a logit of eight bits.
template <bool Wrong>
void from_logsumexp(const Call& call, Device& device) {
  kernel("cross_entropy/cpu/naive").run(call, device);
  const auto args = ops::CrossEntropyArgs::unpack(call);
  float losses = 0;
  for (Index i = 0; i < args.rows; ++i) {
    const float logit = args.logits.as<const float>()(i, args.targets(i));
    args.loss(i) = args.weights(args.targets(i)) * (args.logsumexp(i) - (Wrong ? widen(to_bfloat16(logit)) : logit));
    losses += args.loss(i);
  }
  args.total(0) = args.reduction == 1 ? losses / args.normalizer(0) : losses;
}

/// The loss by PyTorch's formula. `Wrong`: applies weights to negative labels, too.
template <bool Wrong>
void from_parts_that_cancel(const Call& call, Device&) {
  const auto args = ops::BceWithLogitsArgs::unpack(call);
  for (Index i = 0; i < args.rows; ++i) {
    float sum = 0;
    for (Index j = 0; j < args.classes; ++j) {
      const float x = args.logits(i, j), t = args.targets(i, j), w = args.pos_weight(j);
      const float weight = Wrong ? w : (w - 1) * t + 1;
      sum += (1 - t) * x + weight * (std::log1p(std::exp(-std::fabs(x))) + (-x > 0 ? -x : x == x ? 0 : x));
    }
    args.loss(i) = sum / static_cast<float>(args.classes);
  }
}

/// Scales as in bitsandbytes, without flushing. `Wrong`: doubles small scales.
template <bool Wrong>
void every_scale(const Call& call, Device&) {
  const auto args = ops::Nf4DequantizeArgs::unpack(call);
  for (Index j = 0; j < args.n; ++j)
    for (Index p = 0; p < args.k; ++p) {
      const float scale = args.absmax(j, p / kNf4Block);
      args.y(j, p) =
          kNf4[nf4_code(&args.codes(j, 0), p)] * (Wrong && std::fabs(scale) < kNf4Smallest ? 2 * scale : scale);
    }
}

TEST(Relations, PinsThatKernelsDeclareLost) {
  const struct {
    std::string_view like;
    Loss loss;
    Body right, wrong;
  } kinds[] = {
      {"cross_entropy/cpu/naive", Loss::confident, &from_logsumexp<false>, &from_logsumexp<true>},
      {"bce_with_logits/cpu/naive", Loss::stable, &from_parts_that_cancel<false>, &from_parts_that_cancel<true>},
      {"nf4_dequantize/cpu/naive", Loss::small_scale, &every_scale<false>, &every_scale<true>}};
  for (const auto& [like, loss, right, wrong] : kinds) {
    Kernel k = with(like, right);
    EXPECT_NE(falsified(k, 60), "") << like;
    k.arithmetic.loses = loss;
    EXPECT_EQ(falsified(k, 60), "") << like;
    k.run = wrong;
    EXPECT_NE(falsified(k, 60), "") << like;
  }
}

/// Gives a zero the sign of code times scale.
void sign_of_scale(const Call& call, Device&) {
  const auto args = ops::Nf4DequantizeArgs::unpack(call);
  for (Index j = 0; j < args.n; ++j)
    for (Index p = 0; p < args.k; ++p) {
      const float scale = args.absmax(j, p / kNf4Block), entry = kNf4[nf4_code(&args.codes(j, 0), p)];
      args.y(j, p) = std::fabs(scale) < kNf4Smallest
                         ? std::copysign(0.0F, std::signbit(entry) == std::signbit(scale) ? 1.0F : -1.0F)
                         : entry * scale;
    }
}

TEST(Relations, ZerosOfNf4HaveTheSignThatIsPinned) {
  EXPECT_EQ(falsified(with("nf4_dequantize/cpu/naive", &sign_of_scale), 100), "");
}

/// Drawn parameters are float32 numbers or integers, so that functions of either type receive the drawn value.
TEST(Relations, ParametersAreFloats) {
  for (const OpDescriptor* op : operations()) {
    Random random(1);
    for (int n = 0; n < 50; ++n)
      for (std::size_t p = 0; const double x : draw_params(*op, random))
        EXPECT_TRUE(op->params[p++].integer || static_cast<double>(static_cast<float>(x)) == x)
            << op->name << ": " << x;
  }
}

}  // namespace
}  // namespace assay::falsify::relations_test
