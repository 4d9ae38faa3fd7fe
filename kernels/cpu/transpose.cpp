// dst = srcᵀ on the CPU.
#include "kernels/cpu/transpose.hpp"

#include <algorithm>

#include "kernels/cpu/gemm.hpp"
#include "ops/transpose.hpp"
#include "runtime/registry.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/transpose.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/transpose-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace assay::cpu::HWY_NAMESPACE {
namespace {

/// Transposes in blocks: 32x32 floats of src and of dst, 4 KiB each, stay in the first-level cache although one side is
/// accessed across its rows.
void transpose_in_blocks(Index m, Index n, const float* src, Index src_ld, float* dst, Index dst_ld) {
  constexpr Index kBlock = 32;
  for (Index i = 0; i < m; i += kBlock)
    for (Index j = 0; j < n; j += kBlock)
      transpose_block(hn::ScalableTag<float>(), std::min(kBlock, m - i), std::min(kBlock, n - j), src + i * src_ld + j,
                      src_ld, dst + j * dst_ld + i, dst_ld);
}

}  // namespace
}  // namespace assay::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::cpu {
namespace {

HWY_EXPORT(transpose_in_blocks);

using ops::TransposeArgs;

/// The naive kernel's copy, cut into blocks that fit the cache and transposed in registers.
void blocked32(const TransposeArgs& args, Device&) {
  if (args.src.size() == 0) return;
  transpose_blocked(args.m, args.n, args.src.data(), leading_dimension(args.src), args.dst.data(),
                    leading_dimension(args.dst));
}

const KernelRegistration blocked_kernel{{.id = "transpose/cpu/blocked32",
                                         .summary = "blocks of 32x32, strips of 4 columns in SIMD registers",
                                         .run = &run_typed<TransposeArgs, &blocked32>,
                                         .priority = 1}};

}  // namespace

void transpose_blocked(Index m, Index n, const float* src, Index src_ld, float* dst, Index dst_ld) {
  HWY_DYNAMIC_DISPATCH(transpose_in_blocks)(m, n, src, src_ld, dst, dst_ld);
}

}  // namespace assay::cpu
#endif
