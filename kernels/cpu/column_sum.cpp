// y = sums of the columns of x on the CPU.
#include "ops/column_sum.hpp"

#include "kernels/cpu/elementwise.hpp"
#include "runtime/registry.hpp"

#ifndef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/column_sum.cpp"
#endif
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/column_sum-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace assay::cpu::of_column_sum::HWY_NAMESPACE {
using namespace cpu::HWY_NAMESPACE;
namespace {

void sums(Index m, Index n, Rows<const float> x, float* y) { sum_columns<float>(m, n, x, y, nullptr); }

}  // namespace
}  // namespace assay::cpu::of_column_sum::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::cpu::of_column_sum {
namespace {

HWY_EXPORT(sums);

using ops::ColumnSumArgs;

/// The naive kernel in SIMD along the rows; the same order of summation.
void highway(const ColumnSumArgs& args, Device&) {
  HWY_DYNAMIC_DISPATCH(sums)
  (args.m, args.n, Rows<const float>{args.x.data(), rows_of(args.x).ld}, args.y.data());
}

const KernelRegistration highway_kernel{{.id = "column_sum/cpu/highway",
                                         .summary = "SIMD along rows, four rows at a time, one pass",
                                         .run = &run_typed<ColumnSumArgs, &highway>,
                                         .priority = 1}};

}  // namespace
}  // namespace assay::cpu::of_column_sum
#endif
