// y = alpha x on the CPU.
#include "ops/scale.hpp"

#include "runtime/registry.hpp"

#ifndef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/scale.cpp"
#endif
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/elementwise-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace assay::cpu::of_scale::HWY_NAMESPACE {
using namespace cpu::HWY_NAMESPACE;
namespace {

struct Multiply {
  float alpha;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return hn::Mul(hn::Set(d, alpha), x);
  }
};

/// The naive kernel in SIMD: one pass, tails by masks.
void rows(const ops::ScaleArgs& args) {
  map_rows(args.m, args.n, Multiply{static_cast<float>(args.alpha)}, args.y, args.x);
}

}  // namespace
}  // namespace assay::cpu::of_scale::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::cpu::of_scale {
namespace {

HWY_EXPORT(rows);
void highway(const ops::ScaleArgs& args, Device&) { HWY_DYNAMIC_DISPATCH(rows)(args); }

const KernelRegistration highway_kernel{{.id = "scale/cpu/highway",
                                         .summary = "SIMD, one pass over the rows",
                                         .run = &run_typed<ops::ScaleArgs, &highway>,
                                         .priority = 1}};

}  // namespace
}  // namespace assay::cpu::of_scale
#endif
