// Functions of Highway's contrib/math, with NaN and infinities as IEEE 754 requires. Included once per SIMD target.
#if defined(ASSAY_KERNELS_CPU_FUNCTIONS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef ASSAY_KERNELS_CPU_FUNCTIONS_INL
#undef ASSAY_KERNELS_CPU_FUNCTIONS_INL
#else
#define ASSAY_KERNELS_CPU_FUNCTIONS_INL
#endif

#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"
#include "kernels/cpu/simd-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace assay::cpu::HWY_NAMESPACE {

/// exp(x) for x <= 0, including -inf; hn::Exp alone turns NaN into 0.
template <class D>
HWY_INLINE hn::Vec<D> exp_of_negative(D d, hn::Vec<D> x) {
  return hn::IfThenElse(hn::IsNaN(x), x, hn::Exp(d, x));
}

/// exp(x) for every x; hn::Exp alone is valid up to 104 only.
template <class D>
HWY_INLINE hn::Vec<D> exp_of(D d, hn::Vec<D> x) {
  const auto infinite = hn::Ge(x, hn::Set(d, 88.72284F));  // the float above ln(FLT_MAX)
  return hn::IfThenElse(infinite, hn::Inf(d), exp_of_negative(d, x));
}

}  // namespace assay::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
