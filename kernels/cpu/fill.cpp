// y = value on the CPU.
#include "ops/fill.hpp"

#include "runtime/registry.hpp"

#ifndef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/fill.cpp"
#endif
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/elementwise-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace assay::cpu::of_fill::HWY_NAMESPACE {
using namespace cpu::HWY_NAMESPACE;
namespace {

struct Constant {
  float value;
  template <class D>
  HWY_INLINE hn::Vec<D> operator()(D d) const {
    return hn::Set(d, value);
  }
};

/// The naive kernel in SIMD: one pass, tails by masks.
void rows(const ops::FillArgs& args) { map_rows(args.m, args.n, Constant{static_cast<float>(args.value)}, args.y); }

}  // namespace
}  // namespace assay::cpu::of_fill::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::cpu::of_fill {
namespace {

HWY_EXPORT(rows);
void highway(const ops::FillArgs& args, Device&) { HWY_DYNAMIC_DISPATCH(rows)(args); }

const KernelRegistration highway_kernel{{.id = "fill/cpu/highway",
                                         .summary = "SIMD, one pass over the rows",
                                         .run = &run_typed<ops::FillArgs, &highway>,
                                         .priority = 1}};

}  // namespace
}  // namespace assay::cpu::of_fill
#endif
