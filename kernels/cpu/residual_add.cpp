// y = x + alpha r on the CPU.
#include "ops/residual_add.hpp"

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

/// The naive kernel in SIMD: one pass, tails by masks.
void rows(const ops::ResidualAddArgs& args) {
  with_storage(args.y.dtype(), [&]<class S>(S) {
    map_rows(args.m, args.n, Fused{static_cast<float>(args.alpha)}, rows_of<S>(args.y), rows_of<const S>(args.x),
             rows_of<const S>(args.r));
  });
}

}  // namespace
}  // namespace assay::cpu::of_residual_add::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::cpu::of_residual_add {
namespace {

HWY_EXPORT(rows);
void highway(const ops::ResidualAddArgs& args, Device&) { HWY_DYNAMIC_DISPATCH(rows)(args); }

KernelRegistration add(DType storage, std::string_view id) {
  return KernelRegistration({.id = id,
                             .storage = storage,
                             .summary = "SIMD, one pass over the rows",
                             .run = &run_typed<ops::ResidualAddArgs, &highway>,
                             .priority = 1});
}

const KernelRegistration registrations[] = {
    add(DType::f32, "residual_add/cpu/highway"),
    add(DType::f16, "residual_add/cpu/highway_f16"),
    add(DType::bf16, "residual_add/cpu/highway_bf16"),
};

}  // namespace
}  // namespace assay::cpu::of_residual_add
#endif
