// dst = dst + alpha src on the CPU.
#include "ops/accumulate.hpp"

#include "kernels/cpu/elementwise.hpp"
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

void accumulate_rows(Index m, Index n, float alpha, Rows<float> dst, Rows<const float> src) {
  map_rows(m, n, Fused{alpha}, dst, dst, src);
}

}  // namespace
}  // namespace assay::cpu::of_accumulate::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::cpu::of_accumulate {
namespace {

HWY_EXPORT(accumulate_rows);

using ops::AccumulateArgs;

/// The naive kernel in SIMD: one pass, tails by masks.
void highway(const AccumulateArgs& args, Device&) {
  HWY_DYNAMIC_DISPATCH(accumulate_rows)
  (args.m, args.n, static_cast<float>(args.alpha), rows_of(args.dst),
   Rows<const float>{args.src.data(), rows_of(args.src).ld});
}

const KernelRegistration highway_kernel{{.id = "accumulate/cpu/highway",
                                         .summary = "SIMD, one pass over the rows",
                                         .run = &run_typed<AccumulateArgs, &highway>,
                                         .priority = 1}};

}  // namespace
}  // namespace assay::cpu::of_accumulate
#endif
