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

/// y[i,j] = gate[i,j] / (1 + exp(-gate[i,j])) * up[i,j]
///   gate, up, y (rows,n): float32, binary16 or bfloat16, rows dense; y shares no memory with gate or up.
template <class S>
void naive(const SiluMulArgs& args, Device&) {
  const View<const S> gate = args.gate.as<const S>(), up = args.up.as<const S>();
  const View<S> y = args.y.as<S>();
  for (Index i = 0; i < args.rows; ++i)
    for (Index j = 0; j < args.n; ++j) {
      const float g = widen(gate(i, j));
      y(i, j) = narrow<S>(g / (1.0F + std::exp(-g)) * widen(up(i, j)));
    }
}

/// The same in SIMD, by exp(-|gate|).
void highway(const SiluMulArgs& args, Device&) { HWY_DYNAMIC_DISPATCH(silu_mul_rows)(args); }

template <void (*run)(const SiluMulArgs&, Device&)>
KernelRegistration add(DType storage, FunctionLibrary functions, std::string_view id, std::string_view summary, int priority) {
  return KernelRegistration({.op = "silu_mul",
                             .id = id,
                             .arithmetic = {.functions = functions},
                             .storage = storage,
                             .source = "kernels/cpu/silu_mul.cpp",
                             .summary = summary,
                             .run = &run_typed<SiluMulArgs, run>,
                             .priority = priority});
}

constexpr std::string_view kNaive = "two loops", kHighway = "SIMD, one pass over the rows";
constexpr FunctionLibrary kC = FunctionLibrary::c_library, kSimd = FunctionLibrary::highway;
const KernelRegistration registrations[] = {
    add<&naive<float>>(DType::f32, kC, "silu_mul/cpu/naive", kNaive, 0),
    add<&naive<Half>>(DType::f16, kC, "silu_mul/cpu/naive_f16", kNaive, 0),
    add<&naive<BFloat16>>(DType::bf16, kC, "silu_mul/cpu/naive_bf16", kNaive, 0),
    add<&highway>(DType::f32, kSimd, "silu_mul/cpu/highway", kHighway, 1),
    add<&highway>(DType::f16, kSimd, "silu_mul/cpu/highway_f16", kHighway, 1),
    add<&highway>(DType::bf16, kSimd, "silu_mul/cpu/highway_bf16", kHighway, 1),
};

}  // namespace
}  // namespace assay::cpu::of_silu_mul
#endif
