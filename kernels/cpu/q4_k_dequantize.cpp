// Values of Q4_K super-blocks on the CPU.
#include "ops/q4_k_dequantize.hpp"

#include <cstring>

#include "core/q4_k.hpp"
#include "kernels/cpu/elementwise.hpp"
#include "runtime/registry.hpp"

#ifndef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/q4_k_dequantize.cpp"
#endif
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/q4_k-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace assay::cpu::of_q4_k_dequantize::HWY_NAMESPACE {
using namespace cpu::HWY_NAMESPACE;
namespace {

void dequantize(Index rows, Index k, Rows<const std::uint8_t> blocks, Rows<float> y) {
  const Index whole = k / q4_k::kValues, rest = k % q4_k::kValues;
  for (Index i = 0; i < rows; ++i) {
    const std::uint8_t* block = blocks.data + i * blocks.ld;
    float* to = y.data + i * y.ld;
    for (Index n = 0; n < whole; ++n, block += q4_k::kBytes, to += q4_k::kValues) decode(block, to);
    if (rest == 0) continue;
    HWY_ALIGN float values[q4_k::kValues];
    decode(block, values);
    std::memcpy(to, values, static_cast<std::size_t>(rest) * sizeof(float));
  }
}

}  // namespace
}  // namespace assay::cpu::of_q4_k_dequantize::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::cpu::of_q4_k_dequantize {
namespace {

HWY_EXPORT(dequantize);

using ops::Q4KDequantizeArgs;

/// The naive kernel in SIMD, a super-block at a time.
void highway(const Q4KDequantizeArgs& args, Device&) {
  HWY_DYNAMIC_DISPATCH(dequantize)(args.rows, args.k, rows_of(args.blocks), rows_of(args.y));
}

const KernelRegistration highway_kernel{{.id = "q4_k_dequantize/cpu/highway",
                                         .summary = "SIMD, a super-block at a time",
                                         .run = &run_typed<Q4KDequantizeArgs, &highway>,
                                         .priority = 1}};

}  // namespace
}  // namespace assay::cpu::of_q4_k_dequantize
#endif
