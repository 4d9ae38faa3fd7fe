// Binary cross-entropy of logits on the CPU.
#include "ops/bce_with_logits.hpp"

#include <algorithm>
#include <cmath>

#include "runtime/registry.hpp"

#ifndef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/bce_with_logits.cpp"
#endif
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/functions-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace assay::cpu::of_bce_with_logits::HWY_NAMESPACE {
using namespace cpu::HWY_NAMESPACE;
namespace {

/// sum_j w[j] t[j] softplus(-x[j]) + (1 - t[j]) softplus(x[j]), two vector sums.
void sum_labels(const float* x, const float* t, const float* w, Index n, float& sum) {
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const Index lanes = static_cast<Index>(hn::Lanes(d));
  const V zero = hn::Zero(d), one = hn::Set(d, 1.0F);
  V positive = zero, negative = zero;
  const auto add = [&](V vx, V vt, V vw) HWY_ATTR {
    const V power = exp_of_negative(d, hn::Neg(hn::Abs(vx)));
    const V beside = hn::IfThenElse(hn::IsNaN(power), power, hn::Log1p(d, power));
    positive = hn::MulAdd(hn::Mul(vw, vt), hn::Add(hn::Max(hn::Neg(vx), zero), beside), positive);
    negative = hn::MulAdd(hn::Sub(one, vt), hn::Add(hn::Max(vx, zero), beside), negative);
  };
  Index j = 0;
  for (; j + lanes <= n; j += lanes) add(hn::LoadU(d, x + j), hn::LoadU(d, t + j), hn::LoadU(d, w + j));
  if (j < n) {  // lanes past the end: t = 1 with weight 0 adds nothing
    const auto rest = hn::FirstN(d, static_cast<std::size_t>(n - j));
    add(load_masked(d, x + j, rest), hn::IfThenElse(rest, load_masked(d, t + j, rest), one),
        load_masked(d, w + j, rest));
  }
  sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(positive, negative)));
}

}  // namespace
}  // namespace assay::cpu::of_bce_with_logits::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::cpu::of_bce_with_logits {
namespace {

HWY_EXPORT(sum_labels);

using ops::BceWithLogitsArgs;

/// loss[i] = sum_j (pos_weight[j] t softplus(-x) + (1 - t) softplus(x)) / classes; logits, targets (rows, classes): any
/// leading dimension; loss shares no memory with them. One pass. Error: the contract's bound.
void highway(const BceWithLogitsArgs& args, Device&) {
  for (Index i = 0; i < args.rows; ++i) {
    float sum = 0;
    HWY_DYNAMIC_DISPATCH(sum_labels)
    (args.logits.data() + i * args.logits.stride(0), args.targets.data() + i * args.targets.stride(0),
     args.pos_weight.data(), args.classes, sum);
    args.loss(i) = sum / static_cast<float>(args.classes);
  }
}

const KernelRegistration highway_kernel{{.id = "bce_with_logits/cpu/highway",
                                         .arithmetic = {.functions = FunctionLibrary::highway},
                                         .summary = "two vector sums per row, one thread",
                                         .run = &run_typed<BceWithLogitsArgs, &highway>,
                                         .priority = 1}};

}  // namespace
}  // namespace assay::cpu::of_bce_with_logits
#endif
