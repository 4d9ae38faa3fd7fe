// dx = dy times the derivative of x sigmoid(x) on the CPU.
#include "ops/silu_backward.hpp"

#include <cmath>

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

/// The naive kernel in SIMD: one pass, tails by masks.
void rows(const ops::SiluBackwardArgs& args) {
  with_storage(args.dx.dtype(), [&]<class S>(S) {
    map_rows(args.m, args.n, Slope{}, rows_of<S>(args.dx), rows_of<const S>(args.x), rows_of<const S>(args.dy));
  });
}

}  // namespace
}  // namespace assay::cpu::of_silu_backward::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::cpu::of_silu_backward {
namespace {

HWY_EXPORT(rows);
void highway(const ops::SiluBackwardArgs& args, Device&) { HWY_DYNAMIC_DISPATCH(rows)(args); }

KernelRegistration add(DType storage, std::string_view id) {
  return KernelRegistration({.id = id,
                             .arithmetic = {.functions = FunctionLibrary::highway},
                             .storage = storage,
                             .summary = "SIMD, one pass over the rows",
                             .run = &run_typed<ops::SiluBackwardArgs, &highway>,
                             .priority = 1});
}

const KernelRegistration registrations[] = {
    add(DType::f32, "silu_backward/cpu/highway"),
    add(DType::f16, "silu_backward/cpu/highway_f16"),
    add(DType::bf16, "silu_backward/cpu/highway_bf16"),
};

}  // namespace
}  // namespace assay::cpu::of_silu_backward
#endif
