// Rotary position embedding and its gradient, the rotation back, on the CPU.
#include "ops/rope.hpp"

#include <vector>

#include "kernels/rope.hpp"
#include "ops/rope_backward.hpp"
#include "runtime/registry.hpp"

#ifndef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/rope.cpp"
#endif
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/storage-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace assay::cpu::of_rope::HWY_NAMESPACE {
using namespace cpu::HWY_NAMESPACE;
namespace {

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

template <class S>
void rotate_all(const RopeCall& call) {
  const Index half = call.d / 2;
  const std::vector<RopeFrequency>& frequencies = rope_frequencies(call.theta, call.d, call.float32_angle);
  const View<const S> x = call.from.as<const S>();
  const View<S> y = call.to.as<S>();
  float cosine[256], sine[256];
  for (Index row = 0; row < call.rows; ++row) {
    for (Index i = 0; i < half; ++i) {
      const CosSin r = rope_cos_sin(frequencies[static_cast<std::size_t>(i)], call.positions(row), call.float32_angle);
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

void rotate_rows(const RopeCall& call) {
  with_storage(call.from.dtype(), [&]<class S>(S) { rotate_all<S>(call); });
}

}  // namespace
}  // namespace assay::cpu::of_rope::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::cpu::of_rope {
namespace {

HWY_EXPORT(rotate_rows);

/// Rotates every pair of every head by the angles of core/rope.hpp; kernels/rope.hpp computes their cosines and
/// sines.
///   (rows,heads,d) twice: float32, binary16 or bfloat16, heads dense; positions (rows) from 0 to 2^20 - 1; no memory
///   is shared.
template <class Args>
void highway(const Args& args, Device&) {
  HWY_DYNAMIC_DISPATCH(rotate_rows)(rope_call(args));
}

template <class Args>
KernelRegistration add(DType storage, std::string_view id) {
  return KernelRegistration({.id = id,
                             .arithmetic = {.functions = FunctionLibrary::octant},
                             .storage = storage,
                             .summary = "cosines and sines once a row, then SIMD over heads",
                             .run = &run_typed<Args, &highway<Args>>,
                             .priority = 1});
}

const KernelRegistration registrations[] = {
    add<ops::RopeArgs>(DType::f32, "rope/cpu/highway"),
    add<ops::RopeArgs>(DType::f16, "rope/cpu/highway_f16"),
    add<ops::RopeArgs>(DType::bf16, "rope/cpu/highway_bf16"),
    add<ops::RopeBackwardArgs>(DType::f32, "rope_backward/cpu/highway"),
    add<ops::RopeBackwardArgs>(DType::f16, "rope_backward/cpu/highway_f16"),
    add<ops::RopeBackwardArgs>(DType::bf16, "rope_backward/cpu/highway_bf16"),
};

}  // namespace
}  // namespace assay::cpu::of_rope
#endif
