// Transposition of a block in registers, shared by the transpose kernel and by the packing of the products.
// Included once per SIMD target.
#if defined(ASSAY_KERNELS_CPU_TRANSPOSE_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef ASSAY_KERNELS_CPU_TRANSPOSE_INL
#undef ASSAY_KERNELS_CPU_TRANSPOSE_INL
#else
#define ASSAY_KERNELS_CPU_TRANSPOSE_INL
#endif

#include "core/shape.hpp"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace assay::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET != HWY_SCALAR
/// Loads the vector whose 128-bit block b holds src[4b * ld + 0..3]: one load for each group of four lanes.
template <class D>
HWY_INLINE hn::Vec<D> load_blocks(D d, const float* src, Index ld) {
  if constexpr (hn::MaxLanes(d) == 4) {
    (void)ld;
    return hn::LoadU(d, src);
  } else {
    const hn::Half<D> half;
    const Index upper = static_cast<Index>(hn::Lanes(half)) * ld;
    return hn::Combine(d, load_blocks(half, src + upper, ld), load_blocks(half, src, ld));
  }
}

/// dst[j * dst_ld + i] = src[i * src_ld + j] for i < Lanes(d), j < 4. The four rows of each group are in one 128-bit
/// block, so that two interleavings transpose all groups at once.
template <class D>
HWY_INLINE void transpose_strip(D d, const float* src, Index src_ld, float* dst, Index dst_ld) {
  const hn::Repartition<double, D> pairs;
  const auto r0 = load_blocks(d, src, src_ld);
  const auto r1 = load_blocks(d, src + src_ld, src_ld);
  const auto r2 = load_blocks(d, src + 2 * src_ld, src_ld);
  const auto r3 = load_blocks(d, src + 3 * src_ld, src_ld);
  const auto low01 = hn::BitCast(pairs, hn::InterleaveLower(d, r0, r1));
  const auto low23 = hn::BitCast(pairs, hn::InterleaveLower(d, r2, r3));
  const auto high01 = hn::BitCast(pairs, hn::InterleaveUpper(d, r0, r1));
  const auto high23 = hn::BitCast(pairs, hn::InterleaveUpper(d, r2, r3));
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, low01, low23)), d, dst);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, low01, low23)), d, dst + dst_ld);
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, high01, high23)), d, dst + 2 * dst_ld);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, high01, high23)), d, dst + 3 * dst_ld);
}
#endif

/// dst[j * dst_ld + i] = src[i * src_ld + j] for i < rows, j < cols. Moves bits, so NaN payloads survive. Reads and
/// writes these elements only. Rows that do not fill a vector take narrower vectors, then single elements.
template <class D>
HWY_INLINE void transpose_block(D d, Index rows, Index cols, const float* src, Index src_ld, float* dst, Index dst_ld) {
  Index i = 0;
#if HWY_TARGET != HWY_SCALAR
  const Index lanes = static_cast<Index>(hn::Lanes(d));
  const Index strips = cols / 4 * 4;
  for (; i + lanes <= rows; i += lanes) {
    for (Index j = 0; j < strips; j += 4)
      transpose_strip(d, src + i * src_ld + j, src_ld, dst + j * dst_ld + i, dst_ld);
    for (Index j = strips; j < cols; ++j)
      for (Index r = i; r < i + lanes; ++r) dst[j * dst_ld + r] = src[r * src_ld + j];
  }
  if constexpr (hn::MaxLanes(d) > 4) {
    if (i < rows) transpose_block(hn::Half<D>(), rows - i, cols, src + i * src_ld, src_ld, dst + i, dst_ld);
    return;
  }
#else
  (void)d;
#endif
  for (; i < rows; ++i)
    for (Index j = 0; j < cols; ++j) dst[j * dst_ld + i] = src[i * src_ld + j];
}

}  // namespace assay::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
