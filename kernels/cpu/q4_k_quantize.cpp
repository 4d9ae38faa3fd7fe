// Q4_K super-blocks of values on the CPU.
#include "ops/q4_k_quantize.hpp"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstring>

#include "core/q4_k.hpp"
#include "kernels/cpu/elementwise.hpp"
#include "runtime/registry.hpp"

#ifndef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/q4_k_quantize.cpp"
#endif
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/q4_k-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace assay::cpu::of_q4_k_quantize::HWY_NAMESPACE {
using namespace cpu::HWY_NAMESPACE;
namespace {

/// Computes the codes of the 32 values of a sub-block. A product with the reciprocal approximates the code; exact
/// comparisons correct it.
void encode_sub_block(const float* x, const q4_k::Line& line, std::uint8_t* codes) {
  const Q4kTag d;
  const hn::RebindToSigned<Q4kTag> integers;
  const hn::Rebind<std::uint8_t, Q4kTag> bytes;
  const auto step = hn::Set(d, line.step), minimum = hn::Set(d, line.minimum), one = hn::Set(d, 1.0F);
  const auto inverse = hn::Set(d, line.step > 0 ? 1 / line.step : 0.0F);
  for (Index j = 0; j < q4_k::kSubBlock; j += static_cast<Index>(hn::Lanes(d))) {
    const auto v = hn::Add(hn::Load(d, x + j), minimum), twice = hn::Add(v, v);
    const auto near = hn::ConvertTo(integers, hn::MulAdd(v, inverse, hn::Set(d, 0.5F)));
    auto q = hn::ConvertTo(d, hn::Min(near, hn::Set(integers, 15)));
    const auto two_q = hn::Add(q, q);
    const auto too_large = hn::Ge(hn::Mul(hn::Sub(two_q, one), step), twice);
    const auto too_small = hn::Lt(hn::Mul(hn::Add(two_q, one), step), twice);
    q = hn::Sub(hn::Add(q, hn::IfThenElseZero(too_small, one)), hn::IfThenElseZero(too_large, one));
    q = hn::Max(q, hn::Zero(d));
    hn::StoreU(hn::DemoteTo(bytes, hn::ConvertTo(integers, q)), bytes, codes + j);
  }
}

struct Range {
  float lowest, highest;
};

Range range_of(const float* x) {
  const Q4kTag d;
  auto lowest = hn::Load(d, x), highest = lowest;
  for (Index j = static_cast<Index>(hn::Lanes(d)); j < q4_k::kSubBlock; j += static_cast<Index>(hn::Lanes(d))) {
    lowest = hn::Min(lowest, hn::Load(d, x + j));
    highest = hn::Max(highest, hn::Load(d, x + j));
  }
  return {hn::GetLane(hn::MinOfLanes(d, lowest)), hn::GetLane(hn::MaxOfLanes(d, highest))};
}

/// Flushes subnormal values to 0. Returns false if a value is not finite.
bool flush(float* x) {
  const Q4kTag d;
  auto finite = hn::FirstN(d, hn::Lanes(d));
  for (Index j = 0; j < q4_k::kValues; j += static_cast<Index>(hn::Lanes(d))) {
    const auto v = hn::Load(d, x + j), magnitude = hn::Abs(v);
    finite = hn::And(finite, hn::Le(magnitude, hn::Set(d, FLT_MAX)));
    hn::Store(hn::IfThenElseZero(hn::Ge(magnitude, hn::Set(d, FLT_MIN)), v), d, x + j);
  }
  return hn::AllTrue(d, finite);
}

/// Encodes one super-block of 256 values.
void encode(float* x, std::uint8_t* block) {
  std::memset(block, 0, q4_k::kBytes);
  const auto put = [block](Index at, Half h) { std::memcpy(block + at, &h.bits, 2); };
  if (!flush(x)) return put(0, q4_k::kUndefined);
  Range range[q4_k::kSubBlocks];
  float low = 0, reach = 0;
  for (Index b = 0; b < q4_k::kSubBlocks; ++b) {
    range[b] = range_of(x + b * q4_k::kSubBlock);
    low = std::max(low, -range[b].lowest);
  }
  const Half dmin = q4_k::smallest_half(q4_k::kScaleReach, low);
  if (dmin.bits == 0x7c00) return put(0, q4_k::kUndefined);
  q4_k::Scale scale[q4_k::kSubBlocks];
  for (Index b = 0; b < q4_k::kSubBlocks; ++b) {
    scale[b].minimum = q4_k::smallest_code(widen(dmin), -range[b].lowest);
    range[b].highest += widen(dmin) * static_cast<float>(scale[b].minimum);
    reach = std::max(reach, range[b].highest);
  }
  const Half d = q4_k::smallest_half(q4_k::kValueReach, reach);
  if (d.bits == 0x7c00) return put(0, q4_k::kUndefined);
  put(0, d);
  put(2, dmin);
  std::uint8_t codes[q4_k::kValues];
  for (Index b = 0; b < q4_k::kSubBlocks; ++b) {
    scale[b].scale = q4_k::smallest_code(15 * widen(d), range[b].highest);
    q4_k::pack(block + q4_k::kPacked, b, scale[b]);
    encode_sub_block(x + b * q4_k::kSubBlock, q4_k::line_of(block, b), codes + b * q4_k::kSubBlock);
  }
  for (Index i = 0; i < 128; ++i) {
    const std::uint8_t* const low_code = codes + i / 32 * 64 + i % 32;
    block[q4_k::kCodes + i] = static_cast<std::uint8_t>(low_code[0] | low_code[32] << 4);
  }
}

void quantize(Index rows, Index k, Rows<const float> x, Rows<std::uint8_t> blocks) {
  HWY_ALIGN float values[q4_k::kValues];
  for (Index i = 0; i < rows; ++i)
    for (Index first = 0; first < k; first += q4_k::kValues) {
      const float* const from = x.data + i * x.ld + first;
      const Index count = std::min(q4_k::kValues, k - first);
      std::memcpy(values, from, static_cast<std::size_t>(count) * sizeof(float));
      std::fill(values + count, values + q4_k::kValues, values[count - 1]);
      encode(values, blocks.data + i * blocks.ld + first / q4_k::kValues * q4_k::kBytes);
    }
}

}  // namespace
}  // namespace assay::cpu::of_q4_k_quantize::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::cpu::of_q4_k_quantize {
namespace {

HWY_EXPORT(quantize);

using ops::Q4KQuantizeArgs;

/// The naive kernel in SIMD, a super-block at a time.
void highway(const Q4KQuantizeArgs& args, Device&) {
  HWY_DYNAMIC_DISPATCH(quantize)(args.rows, args.k, rows_of(args.x), rows_of(args.blocks));
}

const KernelRegistration highway_kernel{{.id = "q4_k_quantize/cpu/highway",
                                         .summary = "SIMD, a super-block at a time",
                                         .run = &run_typed<Q4KQuantizeArgs, &highway>,
                                         .priority = 1}};

}  // namespace
}  // namespace assay::cpu::of_q4_k_quantize
#endif
