// dx = dy and dbias = sums of the columns of dy on the CPU.
#include "ops/bias_add_backward.hpp"

#include "kernels/cpu/elementwise.hpp"
#include "runtime/registry.hpp"

#ifndef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/bias_add_backward.cpp"
#endif
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/column_sum-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace assay::cpu::of_bias_add_backward::HWY_NAMESPACE {
using namespace cpu::HWY_NAMESPACE;
namespace {

void gradients(const ops::BiasAddBackwardArgs& args) {
  with_storage(args.dy.dtype(), [&]<class S>(S) {
    const Rows<S> dx = rows_of<S>(args.dx);
    sum_columns(args.m, args.n, rows_of<const S>(args.dy), args.dbias.data(), &dx);
  });
}

}  // namespace
}  // namespace assay::cpu::of_bias_add_backward::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::cpu::of_bias_add_backward {
namespace {

HWY_EXPORT(gradients);

using ops::BiasAddBackwardArgs;

/// The naive kernel in SIMD along the rows, copying each row as it is added; the same order of summation.
void highway(const BiasAddBackwardArgs& args, Device&) { HWY_DYNAMIC_DISPATCH(gradients)(args); }

KernelRegistration add(DType storage, std::string_view id) {
  return KernelRegistration({.id = id,
                             .storage = storage,
                             .summary = "SIMD along rows, four rows at a time, one pass",
                             .run = &run_typed<BiasAddBackwardArgs, &highway>,
                             .priority = 1});
}

const KernelRegistration registrations[] = {
    add(DType::f32, "bias_add_backward/cpu/highway"),
    add(DType::f16, "bias_add_backward/cpu/highway_f16"),
    add(DType::bf16, "bias_add_backward/cpu/highway_bf16"),
};

}  // namespace
}  // namespace assay::cpu::of_bias_add_backward
#endif
