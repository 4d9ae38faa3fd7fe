// absmax = code[q]·absmax2 + offset on the CPU.
#include "ops/nf4_absmax_dequantize.hpp"

#include <algorithm>
#include <cstring>

#include "core/nf4_absmax.hpp"
#include "kernels/cpu/elementwise.hpp"
#include "runtime/registry.hpp"

#ifndef ASSAY_NF4_ABSMAX_LOOK_UP
#define ASSAY_NF4_ABSMAX_LOOK_UP
namespace assay::cpu::of_nf4_absmax_dequantize {
using FourFloats [[gnu::vector_size(16)]] = float;

static_assert([] {
  for (int p = 0; p <= kAbsmaxZero; ++p)
    if (kAbsmaxCode[kAbsmaxZero - p] != -kAbsmaxCode[kAbsmaxZero + p]) return false;
  return true;
}());

/// entries[i] = code[codes[i]], entries aligned to 16 bytes. Kept out of line and outside the SIMD targets: compilers
/// would turn the lookup in the loops below into gathers.
[[gnu::noinline]] inline void look_up(const std::uint8_t* codes, Index count, float* entries) {
  Index i = 0;
  for (; i + 8 <= count; i += 8) {
    std::uint64_t c;
    std::memcpy(&c, codes + i, 8);
    const auto entry = [c](int k) { return kAbsmaxCode[c >> (8 * k) & 255]; };
    *reinterpret_cast<FourFloats*>(entries + i) = FourFloats{entry(0), entry(1), entry(2), entry(3)};
    *reinterpret_cast<FourFloats*>(entries + i + 4) = FourFloats{entry(4), entry(5), entry(6), entry(7)};
  }
  for (; i < count; ++i) entries[i] = kAbsmaxCode[codes[i]];
}
}  // namespace assay::cpu::of_nf4_absmax_dequantize
#endif

#ifndef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/nf4_absmax_dequantize.cpp"
#endif
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/simd-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace assay::cpu::of_nf4_absmax_dequantize::HWY_NAMESPACE {
using namespace cpu::HWY_NAMESPACE;
namespace {

#if HWY_TARGET <= HWY_AVX3
#define ASSAY_HAS_WIDE_LOOK_UP 1
/// Entries of 16 codes, by their distance from the middle, where the code is 0. The table is odd except for its last
/// entry, 1. Half of it fills eight vectors; an instruction that Highway 1.0 lacks looks up in two at once.
template <class D>
hn::Vec<D> entries_of(D d, const std::uint8_t* codes) {
  const hn::RebindToSigned<D> whole;
  const hn::Rebind<std::uint8_t, D> bytes;
  const auto distance =
      hn::Sub(hn::PromoteTo(whole, hn::LoadU(bytes, codes)), hn::Set(whole, std::int32_t{kAbsmaxZero}));
  const auto p = hn::Abs(distance);
  const auto in = [&](int part) {
    const float* const from = kAbsmaxCode.data() + kAbsmaxZero + 32 * part;
    // Indexed by five bits of p.
    return hn::Vec<D>{_mm512_permutex2var_ps(hn::LoadU(d, from).raw, p.raw, hn::LoadU(d, from + 16).raw)};
  };
  const auto has = [&](std::int32_t bit) { return hn::RebindMask(d, hn::TestBit(p, hn::Set(whole, bit))); };
  const auto lower = hn::IfThenElse(has(32), in(1), in(0)), upper = hn::IfThenElse(has(32), in(3), in(2));
  const auto size = hn::IfThenElse(has(128), hn::Set(d, kAbsmaxCode.back()), hn::IfThenElse(has(64), upper, lower));
  return hn::CopySign(size, hn::BitCast(d, distance));
}
#else
#define ASSAY_HAS_WIDE_LOOK_UP 0
#endif

/// Decodes `count` scales of one group. Without a vector lookup the entries are read one by one: hardware gathers
/// measured twice as slow.
void decode_run(const std::uint8_t* codes, float scale, float offset, Index count, float* to) {
  const hn::CappedTag<float, 16> d;
  const auto by = hn::Set(d, scale), middle = hn::Set(d, offset);
  const auto lanes = static_cast<Index>(hn::Lanes(d));
  Index i = 0;
#if ASSAY_HAS_WIDE_LOOK_UP
  for (; i + lanes <= count; i += lanes) hn::StoreU(hn::MulAdd(entries_of(d, codes + i), by, middle), d, to + i);
#endif
  if (i == count) return;
  alignas(64) float entries[kAbsmaxGroup];
  look_up(codes + i, count - i, entries);
  const float* entry = entries;
  for (; i + lanes <= count; i += lanes, entry += lanes)
    hn::StoreU(hn::MulAdd(hn::Load(d, entry), by, middle), d, to + i);
  if (i == count) return;
  const auto rest = hn::FirstN(d, static_cast<std::size_t>(count - i));
  store_masked(hn::MulAdd(hn::MaskedLoad(rest, d, entry), by, middle), d, to + i, rest);
}
#undef ASSAY_HAS_WIDE_LOOK_UP

/// Decodes row by row, in runs that end with a row or a group.
void decode_rows(Index n, Index b, const std::uint8_t* codes, const float* absmax2, float offset, Rows<float> absmax) {
  for (Index j = 0; j < n; ++j)
    for (Index c = 0; c < b;) {
      const Index i = j * b + c, run = std::min(b - c, kAbsmaxGroup - i % kAbsmaxGroup);
      decode_run(codes + i, absmax2[i / kAbsmaxGroup], offset, run, absmax.data + j * absmax.ld + c);
      c += run;
    }
}

}  // namespace
}  // namespace assay::cpu::of_nf4_absmax_dequantize::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::cpu::of_nf4_absmax_dequantize {
namespace {

HWY_EXPORT(decode_rows);

using ops::Nf4AbsmaxDequantizeArgs;

/// The naive kernel in SIMD, fused; a dense matrix is treated as one row.
void highway(const Nf4AbsmaxDequantizeArgs& args, Device&) {
  const bool dense = args.absmax.contiguous();
  HWY_DYNAMIC_DISPATCH(decode_rows)
  (dense ? 1 : args.n, dense ? args.n * args.b : args.b, args.codes.data(), args.absmax2.data(), args.offset(0),
   rows_of(args.absmax));
}

const KernelRegistration highway_kernel{{.id = "nf4_absmax_dequantize/cpu/highway",
                                         .summary = "SIMD, entries gathered or permuted, a fused product",
                                         .run = &run_typed<Nf4AbsmaxDequantizeArgs, &highway>,
                                         .priority = 1}};

}  // namespace
}  // namespace assay::cpu::of_nf4_absmax_dequantize
#endif
