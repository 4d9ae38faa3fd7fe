// Rotary position embedding by given cosines and sines, and its gradient, on the CPU.
#include "ops/rope_table.hpp"

#include "kernels/rope_table.hpp"
#include "ops/rope_table_backward.hpp"
#include "runtime/registry.hpp"

#ifndef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/rope_table.cpp"
#endif
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/storage-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace assay::cpu::of_rope_table::HWY_NAMESPACE {
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
void rotate_all(const RopeTableCall& call) {
  const Index half = call.d / 2, cosine_step = table_step(call.cosines), sine_step = table_step(call.sines);
  const View<const S> x = call.from.as<const S>();
  const View<S> y = call.to.as<S>();
  float cosine[256], sine[256];
  for (Index row = 0; row < call.rows; ++row) {
    // A row of the tables as the heads need it: once for all of them.
    const float* const c = call.cosines.data() + call.positions(row) * cosine_step;
    const float* const s = call.sines.data() + call.positions(row) * sine_step;
    for (Index i = 0; i < half; ++i) {
      const float turned = call.back ? -s[i] : s[i];
      if (call.interleaved) {
        cosine[2 * i] = cosine[2 * i + 1] = c[i];
        sine[2 * i] = -turned, sine[2 * i + 1] = turned;
      } else {
        cosine[i] = c[i], sine[i] = turned;
      }
    }
    for (Index head = 0; head < call.heads; ++head) {
      if (call.interleaved) rotate_neighbours(&x(row, head, 0), &y(row, head, 0), call.d, cosine, sine);
      else rotate_halves(&x(row, head, 0), &y(row, head, 0), half, cosine, sine);
    }
  }
}

void rotate_rows(const RopeTableCall& call) {
  with_storage(call.from.dtype(), [&]<class S>(S) { rotate_all<S>(call); });
}

}  // namespace
}  // namespace assay::cpu::of_rope_table::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::cpu::of_rope_table {
namespace {

HWY_EXPORT(rotate_rows);

/// The naive kernel in SIMD along the pairs of a head.
template <class Args>
void highway(const Args& args, Device&) {
  HWY_DYNAMIC_DISPATCH(rotate_rows)(rope_table_call(args));
}

template <class Args>
KernelRegistration add(DType storage, std::string_view id) {
  return KernelRegistration({.id = id,
                             .storage = storage,
                             .summary = "a row of the tables once, then SIMD over heads",
                             .run = &run_typed<Args, &highway<Args>>,
                             .priority = 1});
}

const KernelRegistration registrations[] = {
    add<ops::RopeTableArgs>(DType::f32, "rope_table/cpu/highway"),
    add<ops::RopeTableArgs>(DType::f16, "rope_table/cpu/highway_f16"),
    add<ops::RopeTableArgs>(DType::bf16, "rope_table/cpu/highway_bf16"),
    add<ops::RopeTableBackwardArgs>(DType::f32, "rope_table_backward/cpu/highway"),
    add<ops::RopeTableBackwardArgs>(DType::f16, "rope_table_backward/cpu/highway_f16"),
    add<ops::RopeTableBackwardArgs>(DType::bf16, "rope_table_backward/cpu/highway_bf16"),
};

}  // namespace
}  // namespace assay::cpu::of_rope_table
#endif
