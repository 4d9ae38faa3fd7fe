// Gradients of silu_mul on the CPU, in one pass.
#include "ops/silu_mul_backward.hpp"

#include <cmath>

#include "kernels/cpu/elementwise.hpp"
#include "runtime/registry.hpp"

#ifndef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/silu_mul_backward.cpp"
#endif
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/silu-inl.hpp"
#include "kernels/cpu/storage-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace assay::cpu::of_silu_mul_backward::HWY_NAMESPACE {
using namespace cpu::HWY_NAMESPACE;
namespace {

template <class S>
void gradient_rows(const ops::SiluMulBackwardArgs& args) {
  const hn::ScalableTag<float> d;
  for (Index i = 0; i < args.rows; ++i) {
    const S* const gate = row_of<S>(args.gate, i);
    const S* const up = row_of<S>(args.up, i);
    const S* const dy = row_of<S>(args.dy, i);
    S* const dgate = row_of<S>(args.dgate, i);
    S* const dup = row_of<S>(args.dup, i);
    for_each_vector(d, args.n, [&](Index j, std::size_t count) {
      const auto g = load_first(d, gate + j, count), upstream = load_first(d, dy + j, count);
      const auto s = sigmoid(d, g);
      const auto silu = hn::Mul(g, s.value), slope = hn::MulAdd(silu, s.rest, s.value);
      store_first(d, hn::Mul(hn::Mul(upstream, load_first(d, up + j, count)), slope), dgate + j, count);
      store_first(d, hn::Mul(upstream, silu), dup + j, count);
    });
  }
}

void silu_mul_backward_rows(const ops::SiluMulBackwardArgs& args) {
  with_storage(args.gate.dtype(), [&]<class S>(S) { gradient_rows<S>(args); });
}

}  // namespace
}  // namespace assay::cpu::of_silu_mul_backward::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::cpu::of_silu_mul_backward {
namespace {

HWY_EXPORT(silu_mul_backward_rows);

using ops::SiluMulBackwardArgs;

/// The naive kernel in SIMD, by exp(-|gate|).
void highway(const SiluMulBackwardArgs& args, Device&) { HWY_DYNAMIC_DISPATCH(silu_mul_backward_rows)(args); }

KernelRegistration add(DType storage, std::string_view id) {
  return KernelRegistration({.id = id,
                             .arithmetic = {.functions = FunctionLibrary::highway},
                             .storage = storage,
                             .summary = "both gradients in one pass, in SIMD",
                             .run = &run_typed<SiluMulBackwardArgs, &highway>,
                             .priority = 1});
}

const KernelRegistration registrations[] = {
    add(DType::f32, "silu_mul_backward/cpu/highway"),
    add(DType::f16, "silu_mul_backward/cpu/highway_f16"),
    add(DType::bf16, "silu_mul_backward/cpu/highway_bf16"),
};

}  // namespace
}  // namespace assay::cpu::of_silu_mul_backward
#endif
