// dx = dy times the derivative of x sigmoid(x) on the CPU.
#include "ops/silu_backward.hpp"

#include <cmath>

#include "kernels/cpu/elementwise.hpp"
#include "runtime/registry.hpp"

#ifndef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/silu_backward.cpp"
#endif
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "hwy/contrib/math/math-inl.h"
#include "kernels/cpu/elementwise-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace assay::cpu::of_silu_backward::HWY_NAMESPACE {
using namespace cpu::HWY_NAMESPACE;
namespace {

/// dy (s + x s (1 - s)), s = sigmoid(x) and 1 - s = sigmoid(-x) by exp(-|x|), which never overflows.
struct Slope {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x, V dy) const {
    const V one = hn::Set(d, 1.0F), power = hn::Exp(d, hn::Neg(hn::Abs(x)));
    const V larger = hn::Div(one, hn::Add(one, power)), smaller = hn::Mul(power, larger);
    const auto negative = hn::Lt(x, hn::Zero(d));
    const V s = hn::IfThenElse(negative, smaller, larger), rest = hn::IfThenElse(negative, larger, smaller);
    return hn::Mul(dy, hn::MulAdd(hn::Mul(x, s), rest, s));
  }
};

void silu_backward_rows(Index m, Index n, Rows<float> dx, Rows<const float> x, Rows<const float> dy) {
  map_rows(m, n, Slope{}, dx, x, dy);
}

}  // namespace
}  // namespace assay::cpu::of_silu_backward::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::cpu::of_silu_backward {
namespace {

HWY_EXPORT(silu_backward_rows);

using ops::SiluBackwardArgs;

/// The naive kernel in SIMD: one pass, tails by masks.
void highway(const SiluBackwardArgs& args, Device&) {
  HWY_DYNAMIC_DISPATCH(silu_backward_rows)
  (args.m, args.n, rows_of(args.dx), Rows<const float>{args.x.data(), rows_of(args.x).ld},
   Rows<const float>{args.dy.data(), rows_of(args.dy).ld});
}

const KernelRegistration highway_kernel{{.id = "silu_backward/cpu/highway",
                                         .arithmetic = {.functions = FunctionLibrary::highway},
                                         .summary = "SIMD, one pass over the rows",
                                         .run = &run_typed<SiluBackwardArgs, &highway>,
                                         .priority = 1}};

}  // namespace
}  // namespace assay::cpu::of_silu_backward
#endif
