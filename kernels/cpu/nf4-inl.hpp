// Decodes NF4 codes to vectors of floats. Included once per SIMD target.
#if defined(ASSAY_KERNELS_CPU_NF4_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef ASSAY_KERNELS_CPU_NF4_INL
#undef ASSAY_KERNELS_CPU_NF4_INL
#else
#define ASSAY_KERNELS_CPU_NF4_INL
#endif

#include <cstring>

#include "core/nf4.hpp"
#include "kernels/cpu/simd-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace assay::cpu::HWY_NAMESPACE {

/// At most 16 lanes, so that the lanes divide a block.
using Nf4Tag = hn::CappedTag<float, 16>;
using Nf4Vec = hn::Vec<Nf4Tag>;
inline constexpr Index kNf4Lanes = static_cast<Index>(hn::MaxLanes(Nf4Tag()));
inline constexpr int kNf4Vectors = static_cast<int>(kNf4Block / kNf4Lanes);  ///< vectors in a block

/// Looks up the codebook entries of a vector of codes.
HWY_INLINE Nf4Vec nf4_entries(hn::VFromD<hn::RebindToSigned<Nf4Tag>> codes) {
  const Nf4Tag d;
  if constexpr (kNf4Lanes == 16) {
    return hn::TableLookupLanes(hn::LoadU(d, kNf4.data()), hn::IndicesFromVec(d, codes));
  } else if constexpr (kNf4Lanes == 8) {
    const hn::RebindToSigned<Nf4Tag> d32;
    const auto within = hn::IndicesFromVec(d, hn::And(codes, hn::Set(d32, 7)));
    const auto upper = hn::RebindMask(d, hn::Gt(codes, hn::Set(d32, 7)));
    return hn::IfThenElse(upper, hn::TableLookupLanes(hn::LoadU(d, kNf4.data() + 8), within),
                          hn::TableLookupLanes(hn::LoadU(d, kNf4.data()), within));
  } else {
    return hn::GatherIndex(d, kNf4.data(), codes);
  }
}

/// Unpacks 32 bytes to 64 codes of a byte each.
HWY_INLINE void unpack_nf4(const std::uint8_t* HWY_RESTRICT pairs, std::uint8_t* HWY_RESTRICT codes) {
#if HWY_TARGET == HWY_SCALAR
  for (Index p = 0; p < kNf4Block; ++p) codes[p] = static_cast<std::uint8_t>(nf4_code(pairs, p));
#else
  const hn::FixedTag<std::uint8_t, 16> d;
  for (int half = 0; half < 2; ++half) {
    const auto both = hn::LoadU(d, pairs + 16 * half);
    const auto first = hn::ShiftRight<4>(both), second = hn::And(both, hn::Set(d, 15));
    hn::Store(hn::InterleaveLower(d, first, second), d, codes + 32 * half);
    hn::Store(hn::InterleaveUpper(d, first, second), d, codes + 32 * half + 16);
  }
#endif
}

/// Packs 64 codes of a byte each to 32 bytes.
HWY_INLINE void pack_nf4(const std::uint8_t* HWY_RESTRICT codes, std::uint8_t* HWY_RESTRICT pairs) {
#if HWY_TARGET == HWY_SCALAR
  for (Index i = 0; i < kNf4Bytes; ++i) pairs[i] = static_cast<std::uint8_t>(codes[2 * i] << 4U | codes[2 * i + 1]);
#else
  const hn::FixedTag<std::uint8_t, 16> d;
  const hn::FixedTag<std::uint16_t, 8> d16;
  const hn::FixedTag<std::int16_t, 8> signed16;
  const hn::FixedTag<std::uint8_t, 8> half;
  for (Index i = 0; i < kNf4Bytes; i += 8) {
    const auto both = hn::BitCast(d16, hn::Load(d, codes + 2 * i));  // the second code in the high byte
    const auto packed = hn::Or(hn::And(hn::ShiftLeft<4>(both), hn::Set(d16, 0xf0)), hn::ShiftRight<8>(both));
    hn::StoreU(hn::DemoteTo(half, hn::BitCast(signed16, packed)), half, pairs + i);
  }
#endif
}

/// Calls f(v, weights from v * kNf4Lanes on) for each vector v of a block: 32 bytes of codes, each entry times `scale`.
template <class F>
HWY_INLINE void for_each_nf4_vector(const std::uint8_t* codes, float scale, F f) {
  const Nf4Tag d;
  const hn::RebindToSigned<Nf4Tag> d32;
  const hn::Rebind<std::uint8_t, Nf4Tag> d_lane;
  const Nf4Vec scales = hn::Set(d, scale);
  HWY_ALIGN std::uint8_t unpacked[kNf4Block];
  unpack_nf4(codes, unpacked);
#pragma GCC unroll 16
  for (int v = 0; v < kNf4Vectors; ++v)
    f(v, hn::Mul(nf4_entries(hn::PromoteTo(d32, hn::Load(d_lane, unpacked + v * kNf4Lanes))), scales));
}

/// Decodes the first `count` weights of a block, 1..64, to `to`.
HWY_INLINE void decode_nf4_block(const std::uint8_t* codes, float scale, Index count, float* to) {
  const Nf4Tag d;
  if (count == kNf4Block) {
    for_each_nf4_vector(codes, scale, [&](int v, Nf4Vec weights) { hn::StoreU(weights, d, to + v * kNf4Lanes); });
    return;
  }
  HWY_ALIGN float block[kNf4Block];
  for_each_nf4_vector(codes, scale, [&](int v, Nf4Vec weights) { hn::Store(weights, d, block + v * kNf4Lanes); });
  std::memcpy(to, block, static_cast<std::size_t>(count) * sizeof(float));
}

}  // namespace assay::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
