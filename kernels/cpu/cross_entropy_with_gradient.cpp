// Weighted cross-entropy and the gradient of its total on the CPU.
#include "ops/cross_entropy_with_gradient.hpp"

#include "kernels/cpu/elementwise.hpp"
#include "runtime/registry.hpp"

#ifndef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/cross_entropy_with_gradient.cpp"
#endif
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/cross_entropy-inl.hpp"
#include "kernels/cpu/storage-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace assay::cpu::of_cross_entropy_with_gradient::HWY_NAMESPACE {
using namespace cpu::HWY_NAMESPACE;
namespace {

void losses_and_gradients(const ops::CrossEntropyWithGradientArgs& args) {
  float weight = 0;
  for (Index i = 0; i < args.rows; ++i) weight += args.weights(args.targets(i));
  const float normalizer = args.reduction == 1 ? weight : 1.0F;
  with_storage(args.logits.dtype(), [&]<class S>(S) {
    float sum = 0;
    for (Index i = 0; i < args.rows; ++i) {
      const S* const x = row_of<const S>(args.logits, i);
      const RowSum row = sum_row(x, args.classes);
      const Index y = args.targets(i);
      args.logsumexp(i) = row.maximum + row.log_sum;
      args.loss(i) = args.weights(y) * ((row.maximum - widen(x[y])) + row.log_sum);
      sum += args.loss(i);
      logit_gradients(x, args.classes, y, args.logsumexp(i), args.weights(y) / normalizer, row_of<S>(args.gradient, i));
    }
    args.total(0) = sum / normalizer;
  });
}

}  // namespace
}  // namespace assay::cpu::of_cross_entropy_with_gradient::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::cpu::of_cross_entropy_with_gradient {
namespace {

HWY_EXPORT(losses_and_gradients);

using ops::CrossEntropyWithGradientArgs;

/// loss[i] = weights[y] ((m - logits[i,y]) + log sum_j exp(logits[i,j] - m)), y = targets[i], logsumexp[i], and total =
/// sum_i loss[i] / normalizer, with gradient[i,j] = weights[y] (exp(logits[i,j] - logsumexp[i]) - [j = y]) / normalizer.
/// logits, gradient (rows, classes): any leading dimensions. No output shares memory with an input. Error: the
/// contract's bound. Cost: three passes over each row, of which one reads memory.
void highway(const CrossEntropyWithGradientArgs& args, Device&) { HWY_DYNAMIC_DISPATCH(losses_and_gradients)(args); }

KernelRegistration add(DType storage, std::string_view id) {
  return KernelRegistration({.id = id,
                             .arithmetic = {.functions = FunctionLibrary::highway},
                             .storage = storage,
                             .summary = "two vector sums per row, maximum first, then its gradient, one thread",
                             .run = &run_typed<CrossEntropyWithGradientArgs, &highway>,
                             .priority = 1});
}

const KernelRegistration registrations[] = {
    add(DType::f32, "cross_entropy_with_gradient/cpu/highway"),
    add(DType::f16, "cross_entropy_with_gradient/cpu/highway_f16"),
    add(DType::bf16, "cross_entropy_with_gradient/cpu/highway_bf16"),
};

}  // namespace
}  // namespace assay::cpu::of_cross_entropy_with_gradient
#endif
