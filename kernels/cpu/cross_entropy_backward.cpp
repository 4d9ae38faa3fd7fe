// Gradient of the weighted cross-entropy on the CPU.
#include "ops/cross_entropy_backward.hpp"

#include <algorithm>
#include <cmath>

#include "runtime/registry.hpp"

#ifndef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/cross_entropy_backward.cpp"
#endif
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/functions-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace assay::cpu::of_cross_entropy_backward::HWY_NAMESPACE {
using namespace cpu::HWY_NAMESPACE;
namespace {

/// dx[j] = scale exp(x[j] - logsumexp). Consistent inputs satisfy x[j] <= logsumexp up to rounding; an inconsistent
/// input beyond exp's range gives infinity.
void scaled_softmax(const float* x, Index n, float logsumexp, float scale, float* dx) {
  const hn::ScalableTag<float> d;
  const Index lanes = static_cast<Index>(hn::Lanes(d));
  const auto shift = hn::Set(d, logsumexp), factor = hn::Set(d, scale);
  const auto term = [&](auto v) HWY_ATTR { return hn::Mul(exp_of(d, hn::Sub(v, shift)), factor); };
  Index j = 0;
  for (; j + lanes <= n; j += lanes) hn::StoreU(term(hn::LoadU(d, x + j)), d, dx + j);
  if (j == n) return;
  const auto rest = hn::FirstN(d, static_cast<std::size_t>(n - j));
  store_masked(term(load_masked(d, x + j, rest)), d, dx + j, rest);
}

}  // namespace
}  // namespace assay::cpu::of_cross_entropy_backward::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::cpu::of_cross_entropy_backward {
namespace {

HWY_EXPORT(scaled_softmax);

using ops::CrossEntropyBackwardArgs;

/// dlogits[i,j] = weights[y] (exp(logits[i,j] - logsumexp[i]) - [j = y]) (dloss[i] + dtotal / normalizer), y =
/// targets[i]; dlogits shares no memory with an input and may have another leading dimension than logits. One pass.
void highway(const CrossEntropyBackwardArgs& args, Device&) {
  const float share = args.dtotal(0) / args.normalizer(0);
  for (Index i = 0; i < args.rows; ++i) {
    const float* const x = args.logits.data() + i * args.logits.stride(0);
    float* const dx = args.dlogits.data() + i * args.dlogits.stride(0);
    const Index y = args.targets(i);
    const float scale = args.weights(y) * (args.dloss(i) + share);
    HWY_DYNAMIC_DISPATCH(scaled_softmax)(x, args.classes, args.logsumexp(i), scale, dx);
    dx[y] = (std::exp(x[y] - args.logsumexp(i)) - 1.0F) * scale;
  }
}

const KernelRegistration highway_kernel{{.id = "cross_entropy_backward/cpu/highway",
                                         .arithmetic = {.functions = FunctionLibrary::highway},
                                         .summary = "one vector loop, one thread",
                                         .run = &run_typed<CrossEntropyBackwardArgs, &highway>,
                                         .priority = 1}};

}  // namespace
}  // namespace assay::cpu::of_cross_entropy_backward
#endif
