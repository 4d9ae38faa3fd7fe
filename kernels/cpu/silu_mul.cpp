// The gate of SwiGLU on the CPU, in one pass.
#include "ops/silu_mul.hpp"

#include <cmath>

#include "runtime/registry.hpp"

#ifndef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/silu_mul.cpp"
#endif
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/silu-inl.hpp"
#include "kernels/cpu/storage-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace assay::cpu::of_silu_mul::HWY_NAMESPACE {
using namespace cpu::HWY_NAMESPACE;
namespace {

template <class S>
void gate_rows(const ops::SiluMulArgs& args) {
  const hn::ScalableTag<float> d;
  const auto* gate = static_cast<const S*>(args.gate.data());
  const auto* up = static_cast<const S*>(args.up.data());
  auto* y = static_cast<S*>(args.y.data());
  const Index gate_ld = row_stride(args.gate), up_ld = row_stride(args.up), y_ld = row_stride(args.y);
  for (Index i = 0; i < args.rows; ++i, gate += gate_ld, up += up_ld, y += y_ld)
    for_each_vector(d, args.n, [&](Index j, std::size_t count) {
      const auto g = load_first(d, gate + j, count);
      store_first(d, hn::Mul(hn::Mul(g, sigmoid(d, g).value), load_first(d, up + j, count)), y + j, count);
    });
}

void silu_mul_rows(const ops::SiluMulArgs& args) {
  with_storage(args.gate.dtype(), [&]<class S>(S) { gate_rows<S>(args); });
}

}  // namespace
}  // namespace assay::cpu::of_silu_mul::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::cpu::of_silu_mul {
namespace {

HWY_EXPORT(silu_mul_rows);

using ops::SiluMulArgs;

/// The naive kernel in SIMD, by exp(-|gate|).
void highway(const SiluMulArgs& args, Device&) { HWY_DYNAMIC_DISPATCH(silu_mul_rows)(args); }

KernelRegistration add(DType storage, std::string_view id) {
  return KernelRegistration({.id = id,
                             .arithmetic = {.functions = FunctionLibrary::highway},
                             .storage = storage,
                             .summary = "SIMD, one pass over the rows",
                             .run = &run_typed<SiluMulArgs, &highway>,
                             .priority = 1});
}

const KernelRegistration registrations[] = {
    add(DType::f32, "silu_mul/cpu/highway"),
    add(DType::f16, "silu_mul/cpu/highway_f16"),
    add(DType::bf16, "silu_mul/cpu/highway_bf16"),
};

}  // namespace
}  // namespace assay::cpu::of_silu_mul
#endif
