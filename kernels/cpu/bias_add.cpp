// y = x + bias on the CPU.
#include "ops/bias_add.hpp"

#include "runtime/registry.hpp"

#ifndef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/bias_add.cpp"
#endif
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/elementwise-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace assay::cpu::of_bias_add::HWY_NAMESPACE {
using namespace cpu::HWY_NAMESPACE;
namespace {

struct Sum {
  template <class D, class V>
  HWY_INLINE V operator()(D, V x, V bias) const {
    return hn::Add(x, bias);
  }
};

/// The naive kernel in SIMD: one pass, tails by masks.
void rows(const ops::BiasAddArgs& args) {
  with_storage(args.y.dtype(), [&]<class S>(S) {
    map_rows(args.m, args.n, Sum{}, rows_of<S>(args.y), rows_of<const S>(args.x), rows_of(args.bias));
  });
}

}  // namespace
}  // namespace assay::cpu::of_bias_add::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::cpu::of_bias_add {
namespace {

HWY_EXPORT(rows);
void highway(const ops::BiasAddArgs& args, Device&) { HWY_DYNAMIC_DISPATCH(rows)(args); }

KernelRegistration add(DType storage, std::string_view id) {
  return KernelRegistration({.id = id,
                             .storage = storage,
                             .summary = "SIMD, one pass over the rows",
                             .run = &run_typed<ops::BiasAddArgs, &highway>,
                             .priority = 1});
}

const KernelRegistration registrations[] = {
    add(DType::f32, "bias_add/cpu/highway"),
    add(DType::f16, "bias_add/cpu/highway_f16"),
    add(DType::bf16, "bias_add/cpu/highway_bf16"),
};

}  // namespace
}  // namespace assay::cpu::of_bias_add
#endif
