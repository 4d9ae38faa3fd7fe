// dst = dst + alpha src on the CPU.
#include "ops/accumulate.hpp"

#include "runtime/registry.hpp"

#ifndef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/accumulate.cpp"
#endif
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/elementwise-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace assay::cpu::of_accumulate::HWY_NAMESPACE {
using namespace cpu::HWY_NAMESPACE;
namespace {

/// dst + alpha src by a fused multiply-add.
struct Fused {
  float alpha;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x, V src) const {
    return hn::MulAdd(hn::Set(d, alpha), src, x);
  }
};

/// The naive kernel in SIMD: one pass, tails by masks.
void rows(const ops::AccumulateArgs& args) {
  map_rows(args.m, args.n, Fused{static_cast<float>(args.alpha)}, args.dst, args.dst, args.src);
}

}  // namespace
}  // namespace assay::cpu::of_accumulate::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::cpu::of_accumulate {
namespace {

HWY_EXPORT(rows);
void highway(const ops::AccumulateArgs& args, Device&) { HWY_DYNAMIC_DISPATCH(rows)(args); }

const KernelRegistration highway_kernel{{.id = "accumulate/cpu/highway",
                                         .summary = "SIMD, one pass over the rows",
                                         .run = &run_typed<ops::AccumulateArgs, &highway>,
                                         .priority = 1}};

}  // namespace
}  // namespace assay::cpu::of_accumulate
#endif
