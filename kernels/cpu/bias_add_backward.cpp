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

void gradients(Index m, Index n, Rows<const float> dy, Rows<float> dx, float* dbias) {
  sum_columns(m, n, dy, dbias, &dx);
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
void highway(const BiasAddBackwardArgs& args, Device&) {
  HWY_DYNAMIC_DISPATCH(gradients)
  (args.m, args.n, Rows<const float>{args.dy.data(), rows_of(args.dy).ld}, rows_of(args.dx), args.dbias.data());
}

const KernelRegistration highway_kernel{{.id = "bias_add_backward/cpu/highway",
                                         .summary = "SIMD along rows, four rows at a time, one pass",
                                         .run = &run_typed<BiasAddBackwardArgs, &highway>,
                                         .priority = 1}};

}  // namespace
}  // namespace assay::cpu::of_bias_add_backward
#endif
