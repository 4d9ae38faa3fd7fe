// Vectors of float loaded from and stored to tensors of float, Half or BFloat16. A store rounds to nearest, ties to
// even. Highway 1.0 truncates to bfloat16, and without F16C its binary16 loses subnormals: those conversions are not
// used.
// Included once per SIMD target (Highway's convention for files named *-inl).
#if defined(ASSAY_KERNELS_CPU_STORAGE_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef ASSAY_KERNELS_CPU_STORAGE_INL
#undef ASSAY_KERNELS_CPU_STORAGE_INL
#else
#define ASSAY_KERNELS_CPU_STORAGE_INL
#endif

#include <cstring>

#include "hwy/highway.h"
#include "kernels/cpu/simd-inl.hpp"
#include "kernels/storage.hpp"

HWY_BEFORE_NAMESPACE();
namespace assay::cpu::HWY_NAMESPACE {

/// Loads all lanes from p.
template <class D>
HWY_INLINE hn::Vec<D> load(D d, const float* p) {
  return hn::LoadU(d, p);
}
template <class D>
HWY_INLINE hn::Vec<D> load(D d, const BFloat16* p) {
  const hn::Rebind<std::uint16_t, D> narrow;
  const hn::RebindToUnsigned<D> wide;
  const auto bits = hn::LoadU(narrow, reinterpret_cast<const std::uint16_t*>(p));
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(wide, bits)));
}
template <class D>
HWY_INLINE hn::Vec<D> load(D d, const Half* p) {
#if HWY_CAP_GE256  // F16C
  const hn::Rebind<hwy::float16_t, D> narrow;
  return hn::PromoteTo(d, hn::LoadU(narrow, reinterpret_cast<const hwy::float16_t*>(p)));
#else
  HWY_ALIGN float lanes[hn::MaxLanes(d)];
  for (std::size_t i = 0; i < hn::Lanes(d); ++i) lanes[i] = widen(p[i]);
  return hn::Load(d, lanes);
#endif
}

/// Stores all lanes to p.
template <class D>
HWY_INLINE void store(D d, hn::Vec<D> v, float* p) {
  hn::StoreU(v, d, p);
}
template <class D>
HWY_INLINE void store(D, hn::Vec<D> v, BFloat16* p) {
  const hn::Rebind<std::uint16_t, D> narrow;
  const hn::RebindToUnsigned<D> wide;
  const hn::RebindToSigned<D> integers;
  const auto bits = hn::BitCast(wide, v);
  const auto upper = hn::ShiftRight<16>(bits);
  const auto odd = hn::And(upper, hn::Set(wide, 1));
  const auto rounded = hn::ShiftRight<16>(hn::Add(bits, hn::Add(odd, hn::Set(wide, 0x7fff))));
  const auto quiet = hn::Or(upper, hn::Set(wide, 0x40));
  const auto nan = hn::RebindMask(wide, hn::IsNaN(v));
  const auto chosen = hn::BitCast(integers, hn::IfThenElse(nan, quiet, rounded));
  hn::StoreU(hn::DemoteTo(narrow, chosen), narrow, reinterpret_cast<std::uint16_t*>(p));
}
template <class D>
HWY_INLINE void store([[maybe_unused]] D d, hn::Vec<D> v, Half* p) {
#if HWY_CAP_GE256
  const hn::Rebind<hwy::float16_t, D> narrow;
  hn::StoreU(hn::DemoteTo(narrow, v), narrow, reinterpret_cast<hwy::float16_t*>(p));
#else
  HWY_ALIGN float lanes[hn::MaxLanes(d)];
  hn::Store(v, d, lanes);
  for (std::size_t i = 0; i < hn::Lanes(d); ++i) p[i] = to_half(lanes[i]);
#endif
}

/// Loads the first `count` lanes (at most all) from p and zeros the others; reads nothing further.
template <class D, class S>
HWY_INLINE hn::Vec<D> load_first(D d, const S* p, std::size_t count) {
  if (count >= hn::Lanes(d)) return load(d, p);
  if constexpr (std::is_same_v<S, float>) {
    return load_masked(d, p, hn::FirstN(d, count));
  } else {
    S lanes[hn::MaxLanes(d)] = {};
    std::memcpy(lanes, p, count * sizeof(S));
    return load(d, lanes);
  }
}

/// Stores the first `count` lanes (at most all) to p; writes nothing further.
template <class D, class S>
HWY_INLINE void store_first(D d, hn::Vec<D> v, S* p, std::size_t count) {
  if (count >= hn::Lanes(d)) return store(d, v, p);
  if constexpr (std::is_same_v<S, float>) {
    store_masked(v, d, p, hn::FirstN(d, count));
  } else {
    S lanes[hn::MaxLanes(d)];
    store(d, v, lanes);
    std::memcpy(p, lanes, count * sizeof(S));
  }
}

/// Calls f(first, count) for each vector of a row of n elements; only the last may have count below the number of
/// lanes.
template <class D, class F>
HWY_INLINE void for_each_vector(D d, Index n, F f) {
  const Index lanes = static_cast<Index>(hn::Lanes(d));
  Index j = 0;
  for (; j + lanes <= n; j += lanes) f(j, static_cast<std::size_t>(lanes));
  if (j < n) f(j, static_cast<std::size_t>(n - j));
}

}  // namespace assay::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
