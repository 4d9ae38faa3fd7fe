// q = the NF4 code of x / absmax on the CPU.
#include "ops/nf4_quantize.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "kernels/cpu/elementwise.hpp"
#include "runtime/registry.hpp"

#ifndef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/nf4_quantize.cpp"
#endif
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/nf4-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace assay::cpu::of_nf4_quantize::HWY_NAMESPACE {
using namespace cpu::HWY_NAMESPACE;
namespace {

/// Computes the codes of 64 floats and their scale. Maxima are taken of bits: magnitudes order like integers, and NaN
/// exceeds infinity.
float encode_block(const float* x, std::uint8_t* codes) {
  const Nf4Tag d;
  const hn::RebindToSigned<Nf4Tag> d32;
  const hn::Rebind<std::uint8_t, Nf4Tag> d_lane;
  auto most = hn::Zero(d32);
  for (Index p = 0; p < kNf4Block; p += kNf4Lanes) most = hn::Max(most, hn::BitCast(d32, hn::Abs(hn::LoadU(d, x + p))));
  const auto bits = static_cast<std::uint32_t>(hn::GetLane(hn::MaxOfLanes(d32, most)));
  const float scale =
      bits >= 0x7f800000U ? std::numeric_limits<float>::quiet_NaN() : nf4_scale(std::bit_cast<float>(bits));
  if (!(scale > 0)) {
    std::fill_n(codes, kNf4Bytes, kNf4ZeroPair);
    return scale;
  }
  Nf4Vec limits[kNf4Midpoints.size()];
#pragma GCC unroll 15
  for (std::size_t i = 0; i < kNf4Midpoints.size(); ++i) limits[i] = hn::Set(d, kNf4Midpoints[i] * scale);
  HWY_ALIGN std::uint8_t unpacked[kNf4Block];
  for (Index p = 0; p < kNf4Block; p += kNf4Lanes) {
    const Nf4Vec v = hn::LoadU(d, x + p);
    auto above = hn::Zero(d32);  // minus the number of limits below v
#pragma GCC unroll 15
    for (const Nf4Vec limit : limits)
      above = hn::Add(above, hn::VecFromMask(d32, hn::RebindMask(d32, hn::Gt(v, limit))));
    hn::Store(hn::DemoteTo(d_lane, hn::Neg(above)), d_lane, unpacked + p);
  }
  pack_nf4(unpacked, codes);
  return scale;
}

void encode_rows(Index n, Index k, Rows<const float> x, Rows<std::uint8_t> codes, Rows<float> absmax) {
  for (Index j = 0; j < n; ++j)
    for (Index b = 0; b < nf4_blocks(k); ++b) {
      const float* from = x.data + j * x.ld + b * kNf4Block;
      std::uint8_t* to = codes.data + j * codes.ld + b * kNf4Bytes;
      const Index count = std::min(kNf4Block, k - b * kNf4Block);
      HWY_ALIGN float padded[kNf4Block];  // padding zeros encode as 7
      if (count < kNf4Block) {
        std::fill(std::copy_n(from, count, padded), padded + kNf4Block, 0.0F);
        from = padded;
      }
      absmax.data[j * absmax.ld + b] = encode_block(from, to);
    }
}

}  // namespace
}  // namespace assay::cpu::of_nf4_quantize::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::cpu::of_nf4_quantize {
namespace {

HWY_EXPORT(encode_rows);

using ops::Nf4QuantizeArgs;

/// The naive kernel in SIMD, block by block.
void highway(const Nf4QuantizeArgs& args, Device&) {
  HWY_DYNAMIC_DISPATCH(encode_rows)(args.n, args.k, rows_of(args.x), rows_of(args.codes), rows_of(args.absmax));
}

const KernelRegistration highway_kernel{{.id = "nf4_quantize/cpu/highway",
                                         .summary = "SIMD, maxima of bits, 15 comparisons a vector",
                                         .run = &run_typed<Nf4QuantizeArgs, &highway>,
                                         .priority = 1}};

}  // namespace
}  // namespace assay::cpu::of_nf4_quantize
#endif
