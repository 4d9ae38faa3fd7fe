// Rotation of the heads of a row, shared by kernels that compute the angles and kernels that are given cosines and
// sines. Included once per SIMD target (Highway's convention for files named *-inl).
#if defined(ASSAY_KERNELS_CPU_ROTATE_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef ASSAY_KERNELS_CPU_ROTATE_INL
#undef ASSAY_KERNELS_CPU_ROTATE_INL
#else
#define ASSAY_KERNELS_CPU_ROTATE_INL
#endif

#include "hwy/highway.h"
#include "kernels/cpu/storage-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace assay::cpu::HWY_NAMESPACE {

/// Pairs half a head apart: y1 = x1 c - x2 s, y2 = x2 c + x1 s.
template <class S>
void rotate_halves(const S* x, S* y, Index half, const float* cosine, const float* sine) {
  const hn::ScalableTag<float> d;
  for_each_vector(d, half, [&](Index i, std::size_t count) {
    const auto c = load_first(d, cosine + i, count), s = load_first(d, sine + i, count);
    const auto x1 = load_first(d, x + i, count), x2 = load_first(d, x + half + i, count);
    store_first(d, hn::Sub(hn::Mul(x1, c), hn::Mul(x2, s)), y + i, count);
    store_first(d, hn::Add(hn::Mul(x2, c), hn::Mul(x1, s)), y + half + i, count);
  });
}

/// Neighbouring pairs: y = x c + swapped(x) s, where each cosine stands twice and each sine as -s, s.
template <class S>
void rotate_neighbours(const S* x, S* y, Index n, const float* cosine, const float* sine) {
#if HWY_TARGET == HWY_SCALAR  // one lane holds no pair
  for (Index j = 0; j < n; ++j) y[j] = narrow<S>(widen(x[j]) * cosine[j] + widen(x[j ^ 1]) * sine[j]);
#else
  const hn::ScalableTag<float> d;
  for_each_vector(d, n, [&](Index j, std::size_t count) {
    const auto c = load_first(d, cosine + j, count), s = load_first(d, sine + j, count),
               v = load_first(d, x + j, count);
    store_first(d, hn::Add(hn::Mul(v, c), hn::Mul(hn::Shuffle2301(v), s)), y + j, count);
  });
#endif
}

/// Rotates all heads of all rows of a RopeCall or RopeTableCall; cos_sin_of(row) returns a function of the pair, whose
/// result has `cos` and `sin`.
template <class S, class Call, class CosSinOf>
void rotate_all(const Call& call, CosSinOf cos_sin_of) {
  const Index half = call.d / 2;
  const View<const S> x = call.from.template as<const S>();
  const View<S> y = call.to.template as<S>();
  float cosine[256], sine[256];
  for (Index row = 0; row < call.rows; ++row) {
    const auto cos_sin = cos_sin_of(row);
    for (Index i = 0; i < half; ++i) {
      const auto r = cos_sin(i);
      const float s = call.inverse ? -r.sin : r.sin;
      if (call.interleaved) {
        cosine[2 * i] = cosine[2 * i + 1] = r.cos;
        sine[2 * i] = -s, sine[2 * i + 1] = s;
      } else {
        cosine[i] = r.cos, sine[i] = s;
      }
    }
    for (Index head = 0; head < call.heads; ++head) {
      if (call.interleaved) rotate_neighbours(&x(row, head, 0), &y(row, head, 0), call.d, cosine, sine);
      else rotate_halves(&x(row, head, 0), &y(row, head, 0), half, cosine, sine);
    }
  }
}

}  // namespace assay::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
