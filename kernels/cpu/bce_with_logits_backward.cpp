// Gradient of the binary cross-entropy on the CPU.
#include "ops/bce_with_logits_backward.hpp"

#include <cmath>

#include "runtime/registry.hpp"

#ifndef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/bce_with_logits_backward.cpp"
#endif
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/functions-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace assay::cpu::of_bce_with_logits_backward::HWY_NAMESPACE {
using namespace cpu::HWY_NAMESPACE;
namespace {

/// dx[j] = share ((1 - t[j]) s - w[j] t[j] (1 - s)), s = sigmoid(x[j]). With z = exp(-|x|), s and 1 - s are 1 / (1 + z)
/// and z / (1 + z), in an order set by the sign of x.
void label_gradients(const float* x, const float* t, const float* w, Index n, float share, float* dx) {
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const Index lanes = static_cast<Index>(hn::Lanes(d));
  const V one = hn::Set(d, 1.0F), factor = hn::Set(d, share);
  const auto gradient = [&](V vx, V vt, V vw) HWY_ATTR {
    const V z = exp_of_negative(d, hn::Neg(hn::Abs(vx)));
    const V near = hn::Div(one, hn::Add(one, z)), far = hn::Mul(z, near);
    const auto negative = hn::Lt(vx, hn::Zero(d));
    const V s = hn::IfThenElse(negative, far, near), rest = hn::IfThenElse(negative, near, far);
    return hn::Mul(hn::NegMulAdd(hn::Mul(vw, vt), rest, hn::Mul(hn::Sub(one, vt), s)), factor);
  };
  Index j = 0;
  for (; j + lanes <= n; j += lanes)
    hn::StoreU(gradient(hn::LoadU(d, x + j), hn::LoadU(d, t + j), hn::LoadU(d, w + j)), d, dx + j);
  if (j == n) return;
  const auto rest = hn::FirstN(d, static_cast<std::size_t>(n - j));
  store_masked(gradient(load_masked(d, x + j, rest), load_masked(d, t + j, rest), load_masked(d, w + j, rest)), d,
               dx + j, rest);
}

}  // namespace
}  // namespace assay::cpu::of_bce_with_logits_backward::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::cpu::of_bce_with_logits_backward {
namespace {

HWY_EXPORT(label_gradients);

using ops::BceWithLogitsBackwardArgs;

/// dlogits[i,j] = dloss[i] / classes ((1 - t) sigmoid(x) - pos_weight[j] t (1 - sigmoid(x))); logits, targets and
/// dlogits (rows, classes), each of its own leading dimension; dlogits shares no memory with an input. One pass.
void highway(const BceWithLogitsBackwardArgs& args, Device&) {
  for (Index i = 0; i < args.rows; ++i) HWY_DYNAMIC_DISPATCH(label_gradients)
  (args.logits.data() + i * args.logits.stride(0), args.targets.data() + i * args.targets.stride(0),
   args.pos_weight.data(), args.classes, args.dloss(i) / static_cast<float>(args.classes),
   args.dlogits.data() + i * args.dlogits.stride(0));
}

const KernelRegistration highway_kernel{{.id = "bce_with_logits_backward/cpu/highway",
                                         .arithmetic = {.functions = FunctionLibrary::highway},
                                         .summary = "one vector loop, one thread",
                                         .run = &run_typed<BceWithLogitsBackwardArgs, &highway>,
                                         .priority = 1}};

}  // namespace
}  // namespace assay::cpu::of_bce_with_logits_backward
#endif
