// Weighted cross-entropy on the CPU.
#include "ops/cross_entropy.hpp"

#include "kernels/cpu/elementwise.hpp"
#include "runtime/registry.hpp"

#ifndef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/cross_entropy.cpp"
#endif
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/cross_entropy-inl.hpp"
#include "kernels/cpu/storage-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace assay::cpu::of_cross_entropy::HWY_NAMESPACE {
using namespace cpu::HWY_NAMESPACE;
namespace {

void losses(const ops::CrossEntropyArgs& args) {
  with_storage(args.logits.dtype(), [&]<class S>(S) {
    float sum = 0, weight = 0;
    for (Index i = 0; i < args.rows; ++i) {
      const S* const x = row_of<const S>(args.logits, i);
      const RowSum row = sum_row(x, args.classes);
      const Index y = args.targets(i);
      args.logsumexp(i) = row.maximum + row.log_sum;
      args.loss(i) = args.weights(y) * ((row.maximum - widen(x[y])) + row.log_sum);
      sum += args.loss(i);
      weight += args.weights(y);
    }
    const bool mean = args.reduction == 1;
    args.normalizer(0) = mean ? weight : 1.0F;
    args.total(0) = mean ? sum / weight : sum;
  });
}

}  // namespace
}  // namespace assay::cpu::of_cross_entropy::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::cpu::of_cross_entropy {
namespace {

HWY_EXPORT(losses);

using ops::CrossEntropyArgs;

/// loss[i] = weights[y] ((m - logits[i,y]) + log sum_j exp(logits[i,j] - m)), y = targets[i]; also writes logsumexp[i],
/// and total = sum_i loss[i] / normalizer. logits (rows, classes): any leading dimension. No output shares memory with
/// an input. Error: the contract's bound. Cost: two passes over each row, of which one reads memory.
void highway(const CrossEntropyArgs& args, Device&) { HWY_DYNAMIC_DISPATCH(losses)(args); }

KernelRegistration add(DType storage, std::string_view id) {
  return KernelRegistration({.id = id,
                             .arithmetic = {.functions = FunctionLibrary::highway},
                             .storage = storage,
                             .summary = "two vector sums per row, maximum first, one thread",
                             .run = &run_typed<CrossEntropyArgs, &highway>,
                             .priority = 1});
}

const KernelRegistration registrations[] = {
    add(DType::f32, "cross_entropy/cpu/highway"),
    add(DType::f16, "cross_entropy/cpu/highway_f16"),
    add(DType::bf16, "cross_entropy/cpu/highway_bf16"),
};

}  // namespace
}  // namespace assay::cpu::of_cross_entropy
#endif
