// Softmax of rows on the CPU: the maximum, the exponentials and their sum, then the quotients; a row stays in the
// cache.
#include "ops/softmax.hpp"

#include <cmath>

#include "runtime/registry.hpp"

#ifndef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/softmax.cpp"
#endif
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "hwy/contrib/math/math-inl.h"
#include "kernels/cpu/storage-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace assay::cpu::of_softmax::HWY_NAMESPACE {
using namespace cpu::HWY_NAMESPACE;
namespace {

/// Powers wait in y for their sum where y holds them exactly; else they are computed again.
template <class S>
inline constexpr bool kKeepsPowers = std::is_same_v<S, float>;

/// Returns the maximum, ignoring NaN: the exponential of a NaN is NaN, and so is the sum.
template <class S>
float largest_of(const S* x, Index n) {
  const hn::ScalableTag<float> d;
  const auto lowest = hn::Set(d, -INFINITY);
  auto largest = lowest;
  for_each_vector(d, n, [&](Index j, std::size_t count) {
    const auto v = load_first(d, x + j, count);
    const auto on = hn::And(hn::FirstN(d, count), hn::Gt(v, largest));
    largest = hn::IfThenElse(on, v, largest);
  });
  return hn::GetLane(hn::MaxOfLanes(d, largest));
}

template <class S>
void row_by_row(const ops::SoftmaxArgs& args) {
  const hn::ScalableTag<float> d;
  const Index n = args.n, x_ld = row_stride(args.x), y_ld = row_stride(args.y);
  const auto* x = static_cast<const S*>(args.x.data());
  auto* y = static_cast<S*>(args.y.data());
  for (Index i = 0; i < args.rows; ++i, x += x_ld, y += y_ld) {
    const float largest = largest_of(x, n);
    const auto shift = hn::Set(d, largest == -INFINITY ? 0.0F : largest);
    auto even = hn::Zero(d), odd = even;
    bool on_even = true;
    const auto power_of = [&](Index j, std::size_t count) HWY_ATTR {
      const auto below = hn::Sub(load_first(d, x + j, count), shift);
      // Highway's Exp does not propagate NaN.
      return hn::IfThenElse(hn::IsNaN(below), below, hn::Exp(d, below));
    };
    for_each_vector(d, n, [&](Index j, std::size_t count) {
      const auto power = power_of(j, count);
      if constexpr (kKeepsPowers<S>) store_first(d, power, y + j, count);
      auto& sum = on_even ? even : odd;
      sum = hn::Add(sum, hn::IfThenElseZero(hn::FirstN(d, count), power));
      on_even = !on_even;
    });
    const float sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(even, odd)));
    const auto scale = hn::Set(d, sum == 0.0F ? 0.0F : 1.0F / sum);
    for_each_vector(d, n, [&](Index j, std::size_t count) {
      const auto power = kKeepsPowers<S> ? load_first(d, y + j, count) : power_of(j, count);
      store_first(d, hn::Mul(power, scale), y + j, count);
    });
  }
}

void softmax_rows(const ops::SoftmaxArgs& args) {
  with_storage(args.x.dtype(), [&]<class S>(S) { row_by_row<S>(args); });
}

}  // namespace
}  // namespace assay::cpu::of_softmax::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::cpu::of_softmax {
namespace {

HWY_EXPORT(softmax_rows);

using ops::SoftmaxArgs;

/// The naive kernel in SIMD; multiplies by the reciprocal instead of dividing.
void highway(const SoftmaxArgs& args, Device&) { HWY_DYNAMIC_DISPATCH(softmax_rows)(args); }

KernelRegistration add(DType storage, std::string_view id) {
  return KernelRegistration({.id = id,
                             .arithmetic = {.functions = FunctionLibrary::highway},
                             .storage = storage,
                             .summary = "maximum, exponentials and quotients in SIMD, one thread",
                             .run = &run_typed<SoftmaxArgs, &highway>,
                             .priority = 1});
}

const KernelRegistration registrations[] = {
    add(DType::f32, "softmax/cpu/highway"),
    add(DType::f16, "softmax/cpu/highway_f16"),
    add(DType::bf16, "softmax/cpu/highway_bf16"),
};

}  // namespace
}  // namespace assay::cpu::of_softmax
#endif
