// y = x sigmoid(x) on the CPU.
#include "ops/silu.hpp"

#include <cmath>

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

/// The naive kernel in SIMD: one pass, tails by masks.
void rows(const ops::SiluArgs& args) {
  with_storage(args.y.dtype(),
               [&]<class S>(S) { map_rows(args.m, args.n, Silu{}, rows_of<S>(args.y), rows_of<const S>(args.x)); });
}

}  // namespace
}  // namespace assay::cpu::of_silu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::cpu::of_silu {
namespace {

HWY_EXPORT(rows);
void highway(const ops::SiluArgs& args, Device&) { HWY_DYNAMIC_DISPATCH(rows)(args); }

KernelRegistration add(DType storage, std::string_view id) {
  return KernelRegistration({.id = id,
                             .arithmetic = {.functions = FunctionLibrary::highway},
                             .storage = storage,
                             .summary = "SIMD, one pass over the rows",
                             .run = &run_typed<ops::SiluArgs, &highway>,
                             .priority = 1});
}

const KernelRegistration registrations[] = {
    add(DType::f32, "silu/cpu/highway"),
    add(DType::f16, "silu/cpu/highway_f16"),
    add(DType::bf16, "silu/cpu/highway_bf16"),
};

}  // namespace
}  // namespace assay::cpu::of_silu
#endif
