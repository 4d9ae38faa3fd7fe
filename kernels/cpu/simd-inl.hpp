// Loads and stores of the first lanes of a vector that touch no byte past those lanes: masks are prefixes (FirstN).
// Included once per SIMD target (Highway's convention for files named *-inl).
#if defined(ASSAY_KERNELS_CPU_SIMD_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef ASSAY_KERNELS_CPU_SIMD_INL
#undef ASSAY_KERNELS_CPU_SIMD_INL
#else
#define ASSAY_KERNELS_CPU_SIMD_INL
#endif

#include <cstddef>
#include <cstring>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace assay::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// True if masked loads and stores of float suppress faults in inactive lanes. Before AVX2, Highway emulates them by
/// touching the whole vector, which may cross the end of the tensor.
inline constexpr bool kMasksSuppressFaults = HWY_CAP_GE256;

/// Loads p[i] into the lanes i that are on in mask and 0 into the others; reads only the active lanes.
template <class D>
HWY_INLINE hn::Vec<D> load_masked(D d, const float* p, hn::Mask<D> mask) {
  if constexpr (kMasksSuppressFaults) {
    return hn::MaskedLoad(mask, d, p);
  } else {
    HWY_ALIGN float lanes[hn::MaxLanes(d)] = {};
    std::memcpy(lanes, p, hn::CountTrue(d, mask) * sizeof(float));
    return hn::Load(d, lanes);
  }
}

/// p[i] = v[i] for the lanes i that are on in mask; writes nothing else.
template <class D>
HWY_INLINE void store_masked(hn::Vec<D> v, D d, float* p, hn::Mask<D> mask) {
  if constexpr (kMasksSuppressFaults) {
    hn::BlendedStore(v, mask, d, p);
  } else {
    HWY_ALIGN float lanes[hn::MaxLanes(d)];
    hn::Store(v, d, lanes);
    std::memcpy(p, lanes, hn::CountTrue(d, mask) * sizeof(float));
  }
}

}  // namespace assay::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
