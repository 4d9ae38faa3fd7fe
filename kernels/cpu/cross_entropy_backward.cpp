// Gradient of the weighted cross-entropy on the CPU.
#include "ops/cross_entropy_backward.hpp"

#include "kernels/cpu/elementwise.hpp"
#include "runtime/registry.hpp"

#ifndef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/cross_entropy_backward.cpp"
#endif
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/cross_entropy-inl.hpp"
#include "kernels/cpu/storage-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace assay::cpu::of_cross_entropy_backward::HWY_NAMESPACE {
using namespace cpu::HWY_NAMESPACE;
namespace {

void gradients(const ops::CrossEntropyBackwardArgs& args) {
  const float share = args.dtotal(0) / args.normalizer(0);
  with_storage(args.logits.dtype(), [&]<class S>(S) {
    for (Index i = 0; i < args.rows; ++i) {
      const S* const x = row_of<const S>(args.logits, i);
      S* const dx = row_of<S>(args.dlogits, i);
      const Index y = args.targets(i);
      const float scale = args.weights(y) * (args.dloss(i) + share);
      logit_gradients(x, args.classes, y, args.logsumexp(i), scale, dx);
    }
  });
}

}  // namespace
}  // namespace assay::cpu::of_cross_entropy_backward::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::cpu::of_cross_entropy_backward {
namespace {

HWY_EXPORT(gradients);

using ops::CrossEntropyBackwardArgs;

/// dlogits[i,j] = weights[y] (exp(logits[i,j] - logsumexp[i]) - [j = y]) (dloss[i] + dtotal / normalizer), y =
/// targets[i]; dlogits shares no memory with an input and may have another leading dimension than logits. One pass.
void highway(const CrossEntropyBackwardArgs& args, Device&) { HWY_DYNAMIC_DISPATCH(gradients)(args); }

KernelRegistration add(DType storage, std::string_view id) {
  return KernelRegistration({.id = id,
                             .arithmetic = {.functions = FunctionLibrary::highway},
                             .storage = storage,
                             .summary = "one vector loop, one thread",
                             .run = &run_typed<CrossEntropyBackwardArgs, &highway>,
                             .priority = 1});
}

const KernelRegistration registrations[] = {
    add(DType::f32, "cross_entropy_backward/cpu/highway"),
    add(DType::f16, "cross_entropy_backward/cpu/highway_f16"),
    add(DType::bf16, "cross_entropy_backward/cpu/highway_bf16"),
};

}  // namespace
}  // namespace assay::cpu::of_cross_entropy_backward
#endif
