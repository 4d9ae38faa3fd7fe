// sigmoid(x) and 1 - sigmoid(x) of vectors by exp(-|x|), which never overflows. Included once per SIMD target
// (Highway's convention for files named *-inl).
#if defined(ASSAY_KERNELS_CPU_SILU_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef ASSAY_KERNELS_CPU_SILU_INL
#undef ASSAY_KERNELS_CPU_SILU_INL
#else
#define ASSAY_KERNELS_CPU_SILU_INL
#endif

#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace assay::cpu::HWY_NAMESPACE {

template <class V>
struct Sigmoid {
  V value, rest;  ///< s, 1 - s; for a NaN 1 and 0, since the factor they multiply is NaN
};

template <class D, class V>
HWY_INLINE Sigmoid<V> sigmoid(D d, V x) {
  namespace hn = hwy::HWY_NAMESPACE;
  const V one = hn::Set(d, 1.0F), power = hn::Exp(d, hn::Neg(hn::Abs(x)));
  const V larger = hn::Div(one, hn::Add(one, power)), smaller = hn::Mul(power, larger);
  const auto negative = hn::Lt(x, hn::Zero(d));
  return {hn::IfThenElse(negative, smaller, larger), hn::IfThenElse(negative, larger, smaller)};
}

}  // namespace assay::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
