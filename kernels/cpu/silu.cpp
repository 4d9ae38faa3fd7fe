// y = x sigmoid(x) on the CPU.
#include "ops/silu.hpp"

#include <cmath>

#include "kernels/cpu/elementwise.hpp"
#include "runtime/registry.hpp"

#ifndef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/silu.cpp"
#endif
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "hwy/contrib/math/math-inl.h"
#include "kernels/cpu/elementwise-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace assay::cpu::of_silu::HWY_NAMESPACE {
using namespace cpu::HWY_NAMESPACE;
namespace {

/// x sigmoid(x) by exp(-|x|), which never overflows.
struct Silu {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    const V one = hn::Set(d, 1.0F), power = hn::Exp(d, hn::Neg(hn::Abs(x)));
    const V numerator = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), power, one);
    return hn::Mul(x, hn::Div(numerator, hn::Add(one, power)));
  }
};

void silu_rows(Index m, Index n, Rows<float> y, Rows<const float> x) {
  map_rows(m, n, Silu{}, y, x);
}

}  // namespace
}  // namespace assay::cpu::of_silu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::cpu::of_silu {
namespace {

HWY_EXPORT(silu_rows);

using ops::SiluArgs;

/// The naive kernel in SIMD: one pass, tails by masks.
void highway(const SiluArgs& args, Device&) {
  HWY_DYNAMIC_DISPATCH(silu_rows)
  (args.m, args.n, rows_of(args.y), Rows<const float>{args.x.data(), rows_of(args.x).ld});
}

const KernelRegistration highway_kernel{{.id = "silu/cpu/highway",
                                         .arithmetic = {.functions = FunctionLibrary::highway},
                                         .summary = "SIMD, one pass over the rows",
                                         .run = &run_typed<SiluArgs, &highway>,
                                         .priority = 1}};

}  // namespace
}  // namespace assay::cpu::of_silu
#endif
