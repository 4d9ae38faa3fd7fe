// q = the 8-bit code of (absmax - mean) / absmax2 on the CPU.
#include "ops/nf4_absmax_quantize.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "core/nf4_absmax.hpp"
#include "kernels/cpu/elementwise.hpp"
#include "runtime/registry.hpp"

#ifndef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/nf4_absmax_quantize.cpp"
#endif
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/simd-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace assay::cpu::of_nf4_absmax_quantize::HWY_NAMESPACE {
using namespace cpu::HWY_NAMESPACE;
namespace {

/// At most 16 lanes, so that whole vectors divide a group of 256.
using AbsmaxTag = hn::CappedTag<float, 16>;
constexpr Index kLanes = static_cast<Index>(hn::MaxLanes(AbsmaxTag()));

/// Returns the sum of 256 terms by the contract's tree; overwrites the terms.
float add_group(float* terms) {
  const AbsmaxTag d;
  Index width = kAbsmaxGroup / 2;
  for (; width >= kLanes; width /= 2)
    for (Index i = 0; i < width; i += kLanes)
      hn::StoreU(hn::Add(hn::LoadU(d, terms + i), hn::LoadU(d, terms + i + width)), d, terms + i);
  for (; width > 0; width /= 2)
    for (Index i = 0; i < width; ++i) terms[i] = terms[i] + terms[i + width];
  return terms[0];
}

/// Computes the codes of the first `count` of 256 values, and their scale. Maxima are taken of bits, which order like
/// magnitudes, NaN last.
float encode_group(const float* values, float offset, Index count, std::uint8_t* codes) {
  const AbsmaxTag d;
  const hn::RebindToSigned<AbsmaxTag> d32;
  const hn::Rebind<std::uint8_t, AbsmaxTag> d_lane;
  const auto middle = hn::Set(d, offset);
  HWY_ALIGN float differences[kAbsmaxGroup];
  auto most = hn::Zero(d32);
  for (Index i = 0; i < kAbsmaxGroup; i += kLanes) {
    const auto v = hn::IfThenElseZero(hn::FirstN(d, static_cast<std::size_t>(std::clamp<Index>(count - i, 0, kLanes))),
                                      hn::Sub(hn::LoadU(d, values + i), middle));
    hn::Store(v, d, differences + i);
    most = hn::Max(most, hn::BitCast(d32, hn::Abs(v)));
  }
  const float scale = absmax_scale(std::bit_cast<float>(hn::GetLane(hn::MaxOfLanes(d32, most))));
  if (!(scale > 0)) {
    std::fill_n(codes, kAbsmaxGroup, kAbsmaxZero);
    return scale;
  }
  HWY_ALIGN float limits[kAbsmaxGroup];
  std::copy(kAbsmaxMidpoints.begin(), kAbsmaxMidpoints.end(), limits);
  limits[kAbsmaxGroup - 1] = 0;  // the search never reads it
  for (Index i = 0; i < kAbsmaxGroup; i += kLanes)
    hn::Store(hn::Mul(hn::Load(d, limits + i), hn::Set(d, scale)), d, limits + i);
  for (Index i = 0; i < kAbsmaxGroup; i += kLanes) {
    const auto v = hn::Load(d, differences + i);
    auto below = hn::Zero(d32);  // the number of limits below v, by binary search
#pragma GCC unroll 8
    for (int half = kAbsmaxGroup / 2; half > 0; half /= 2) {
      const auto limit = hn::GatherIndex(d, limits, hn::Add(below, hn::Set(d32, half - 1)));
      below = hn::Add(below, hn::IfThenElseZero(hn::RebindMask(d32, hn::Gt(v, limit)), hn::Set(d32, half)));
    }
    hn::StoreU(hn::DemoteTo(d_lane, below), d_lane, codes + i);
  }
  std::fill(codes + count, codes + kAbsmaxGroup, kAbsmaxZero);
  return scale;
}

}  // namespace
}  // namespace assay::cpu::of_nf4_absmax_quantize::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::cpu::of_nf4_absmax_quantize {
namespace {

HWY_EXPORT(add_group);
HWY_EXPORT(encode_group);

using ops::Nf4AbsmaxQuantizeArgs;

/// Loads values first .. first + count - 1 by absmax_value and fills with zeros up to 256.
void load_group(Rows<const float> absmax, Index width, Index first, Index count, float* to) {
  Index row = first / width, column = first % width;
  for (Index i = 0; i < count;) {
    const Index run = std::min(width - column, count - i);
    const float* const from = absmax.data + row * absmax.ld + column;
    for (Index e = 0; e < run; ++e) to[i + e] = absmax_value(from[e]);
    i += run, column = 0, ++row;
  }
  std::fill(to + count, to + kAbsmaxGroup, 0.0F);
}

/// The naive kernel in SIMD, group by group.
void highway(const Nf4AbsmaxQuantizeArgs& args, Device&) {
  const Index count = args.n * args.b;
  const Rows<const float> absmax = rows_of(args.absmax);
  float group[kAbsmaxGroup];
  const auto load = [&](Index g) {
    const Index size = std::min(kAbsmaxGroup, count - g * kAbsmaxGroup);
    load_group(absmax, args.b, g * kAbsmaxGroup, size, group);
    return size;
  };
  std::vector<float> sums(static_cast<std::size_t>(absmax_groups(count)));
  for (std::size_t g = 0; g < sums.size(); ++g) {
    load(static_cast<Index>(g));
    sums[g] = HWY_DYNAMIC_DISPATCH(add_group)(group);
  }
  for (auto size = sums.size(); size > 1;) {
    std::size_t g = 0;
    for (std::size_t first = 0; first < size; first += kAbsmaxGroup, ++g) {
      const std::size_t terms = std::min<std::size_t>(size - first, kAbsmaxGroup);
      std::copy_n(sums.data() + first, terms, group);
      std::fill(group + terms, group + kAbsmaxGroup, 0.0F);
      sums[g] = HWY_DYNAMIC_DISPATCH(add_group)(group);
    }
    size = g;
  }
  const float offset = count == 0 ? 0.0F : absmax_offset(sums[0], absmax_reciprocal(count));
  args.offset(0) = offset;
  for (Index g = 0; g < absmax_groups(count); ++g) {
    const Index size = load(g);
    args.absmax2(g) = HWY_DYNAMIC_DISPATCH(encode_group)(group, offset, size, args.codes.data() + g * kAbsmaxGroup);
  }
}

const KernelRegistration highway_kernel{{.id = "nf4_absmax_quantize/cpu/highway",
                                         .summary = "SIMD, maxima of bits, limits searched by halves",
                                         .run = &run_typed<Nf4AbsmaxQuantizeArgs, &highway>,
                                         .priority = 1}};

}  // namespace
}  // namespace assay::cpu::of_nf4_absmax_quantize
#endif
