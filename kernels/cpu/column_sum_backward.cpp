// dx = dy in every row on the CPU.
#include "ops/column_sum_backward.hpp"

#include "runtime/registry.hpp"

#ifndef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/column_sum_backward.cpp"
#endif
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/elementwise-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace assay::cpu::of_column_sum_backward::HWY_NAMESPACE {
using namespace cpu::HWY_NAMESPACE;
namespace {

struct Copy {
  template <class D, class V>
  HWY_INLINE V operator()(D, V x) const {
    return x;
  }
};

/// The naive kernel in SIMD: one pass, tails by masks.
void rows(const ops::ColumnSumBackwardArgs& args) { map_rows(args.m, args.n, Copy{}, args.dx, args.dy); }

}  // namespace
}  // namespace assay::cpu::of_column_sum_backward::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::cpu::of_column_sum_backward {
namespace {

HWY_EXPORT(rows);
void highway(const ops::ColumnSumBackwardArgs& args, Device&) { HWY_DYNAMIC_DISPATCH(rows)(args); }

const KernelRegistration highway_kernel{{.id = "column_sum_backward/cpu/highway",
                                         .summary = "SIMD, one pass over the rows",
                                         .run = &run_typed<ops::ColumnSumBackwardArgs, &highway>,
                                         .priority = 1}};

}  // namespace
}  // namespace assay::cpu::of_column_sum_backward
#endif
