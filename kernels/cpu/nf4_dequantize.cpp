// y = code[q]·absmax on the CPU.
#include "ops/nf4_dequantize.hpp"

#include <algorithm>

#include "kernels/cpu/elementwise.hpp"
#include "runtime/registry.hpp"

#ifndef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/nf4_dequantize.cpp"
#endif
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/nf4-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace assay::cpu::of_nf4_dequantize::HWY_NAMESPACE {
using namespace cpu::HWY_NAMESPACE;
namespace {

void decode_rows(Index n, Index k, Rows<const std::uint8_t> codes, Rows<const float> absmax, Rows<float> y) {
  for (Index j = 0; j < n; ++j)
    for (Index b = 0; b < nf4_blocks(k); ++b)
      decode_nf4_block(codes.data + j * codes.ld + b * kNf4Bytes, nf4_scale(absmax.data[j * absmax.ld + b]),
                       std::min(kNf4Block, k - b * kNf4Block), y.data + j * y.ld + b * kNf4Block);
}

}  // namespace
}  // namespace assay::cpu::of_nf4_dequantize::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::cpu::of_nf4_dequantize {
namespace {

HWY_EXPORT(decode_rows);

using ops::Nf4DequantizeArgs;

/// The naive kernel in SIMD: a table in registers, block by block.
void highway(const Nf4DequantizeArgs& args, Device&) {
  HWY_DYNAMIC_DISPATCH(decode_rows)(args.n, args.k, rows_of(args.codes), rows_of(args.absmax), rows_of(args.y));
}

const KernelRegistration highway_kernel{{.id = "nf4_dequantize/cpu/highway",
                                         .summary = "SIMD, the table in registers",
                                         .run = &run_typed<Nf4DequantizeArgs, &highway>,
                                         .priority = 1}};

}  // namespace
}  // namespace assay::cpu::of_nf4_dequantize
#endif
