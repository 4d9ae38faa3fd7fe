// Values of Q4_K super-blocks in SIMD. Included once per SIMD target.
#if defined(ASSAY_KERNELS_CPU_Q4_K_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef ASSAY_KERNELS_CPU_Q4_K_INL
#undef ASSAY_KERNELS_CPU_Q4_K_INL
#else
#define ASSAY_KERNELS_CPU_Q4_K_INL
#endif

#include "core/q4_k.hpp"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace assay::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// At most 16 lanes, so that a vector of values stays within a sub-block.
using Q4kTag = hn::CappedTag<float, 16>;

/// Calls f(first, v, w) over the 256 values of a super-block: v holds values first, first + 1, .. from the low nibbles
/// of a vector of bytes, and w the values 32 further on from the high nibbles. Each value is rounded once.
template <class F>
HWY_INLINE void for_each_value(const std::uint8_t* block, const F& f) {
  const Q4kTag d;
  const hn::RebindToSigned<Q4kTag> integers;
  const hn::Rebind<std::uint8_t, Q4kTag> bytes;
  const Index lanes = static_cast<Index>(hn::Lanes(d));
  for (Index group = 0; group < 4; ++group) {
    const q4_k::Line first = q4_k::line_of(block, 2 * group), second = q4_k::line_of(block, 2 * group + 1);
    const auto first_step = hn::Set(d, first.step), first_minimum = hn::Set(d, first.minimum);
    const auto second_step = hn::Set(d, second.step), second_minimum = hn::Set(d, second.minimum);
    const std::uint8_t* const codes = block + q4_k::kCodes + 32 * group;
    for (Index j = 0; j < 32; j += lanes) {
      const auto pairs = hn::PromoteTo(integers, hn::LoadU(bytes, codes + j));
      const auto low = hn::ConvertTo(d, hn::And(pairs, hn::Set(integers, 15)));
      const auto high = hn::ConvertTo(d, hn::ShiftRight<4>(pairs));
      f(64 * group + j, hn::MulSub(first_step, low, first_minimum), hn::MulSub(second_step, high, second_minimum));
    }
  }
}

HWY_INLINE void decode(const std::uint8_t* block, float* values) {
  for_each_value(block, [values](Index at, hn::Vec<Q4kTag> v, hn::Vec<Q4kTag> w) HWY_ATTR {
    hn::StoreU(v, Q4kTag(), values + at);
    hn::StoreU(w, Q4kTag(), values + at + 32);
  });
}

}  // namespace assay::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
