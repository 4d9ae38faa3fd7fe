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

/// Returns the maximum, ignoring NaN: the exponential of a NaN is NaN, and so is the sum.
float largest_of(const float* x, Index n) {
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

void softmax_rows(const ops::SoftmaxArgs& args) {
  const hn::ScalableTag<float> d;
  const Index n = args.n, x_ld = row_stride(args.x), y_ld = row_stride(args.y);
  const float* x = args.x.data();
  float* y = args.y.data();
  for (Index i = 0; i < args.rows; ++i, x += x_ld, y += y_ld) {
    const float largest = largest_of(x, n);
    const auto shift = hn::Set(d, largest == -INFINITY ? 0.0F : largest);
    auto even = hn::Zero(d), odd = even;
    bool on_even = true;
    for_each_vector(d, n, [&](Index j, std::size_t count) {
      const auto below = hn::Sub(load_first(d, x + j, count), shift);
      // Highway's Exp does not propagate NaN.
      const auto power = hn::IfThenElse(hn::IsNaN(below), below, hn::Exp(d, below));
      store_first(d, power, y + j, count);
      auto& sum = on_even ? even : odd;
      sum = hn::Add(sum, hn::IfThenElseZero(hn::FirstN(d, count), power));
      on_even = !on_even;
    });
    const float sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(even, odd)));
    const auto scale = hn::Set(d, sum == 0.0F ? 0.0F : 1.0F / sum);
    for_each_vector(d, n, [&](Index j, std::size_t count) {
      store_first(d, hn::Mul(load_first(d, y + j, count), scale), y + j, count);
    });
  }
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

const KernelRegistration highway_kernel{{.id = "softmax/cpu/highway",
                                         .arithmetic = {.functions = FunctionLibrary::highway},
                                         .summary = "maximum, exponentials and quotients in SIMD, one thread",
                                         .run = &run_typed<SoftmaxArgs, &highway>,
                                         .priority = 1}};

}  // namespace
}  // namespace assay::cpu::of_softmax
#endif
