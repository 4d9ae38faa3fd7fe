// y = x + alpha r on the CPU.
#include "ops/residual_add.hpp"

#include "kernels/cpu/elementwise.hpp"
#include "runtime/registry.hpp"

#ifndef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/residual_add.cpp"
#endif
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/elementwise-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace assay::cpu::of_residual_add::HWY_NAMESPACE {
using namespace cpu::HWY_NAMESPACE;
namespace {

/// x + alpha r by a fused multiply-add.
struct Fused {
  float alpha;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x, V r) const {
    return hn::MulAdd(hn::Set(d, alpha), r, x);
  }
};

void residual_add_rows(Index m, Index n, float alpha, Rows<float> y, Rows<const float> x, Rows<const float> r) {
  map_rows(m, n, Fused{alpha}, y, x, r);
}

}  // namespace
}  // namespace assay::cpu::of_residual_add::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::cpu::of_residual_add {
namespace {

HWY_EXPORT(residual_add_rows);

using ops::ResidualAddArgs;

/// The naive kernel in SIMD: one pass, tails by masks.
void highway(const ResidualAddArgs& args, Device&) {
  HWY_DYNAMIC_DISPATCH(residual_add_rows)
  (args.m, args.n, static_cast<float>(args.alpha), rows_of(args.y),
   Rows<const float>{args.x.data(), rows_of(args.x).ld}, Rows<const float>{args.r.data(), rows_of(args.r).ld});
}

const KernelRegistration highway_kernel{{.id = "residual_add/cpu/highway",
                                         .summary = "SIMD, one pass over the rows",
                                         .run = &run_typed<ResidualAddArgs, &highway>,
                                         .priority = 1}};

}  // namespace
}  // namespace assay::cpu::of_residual_add
#endif
