// The gradient of the mean of the first tokens of each sequence on the CPU.
#include "ops/mean_pool_backward.hpp"

#include "kernels/cpu/elementwise.hpp"
#include "runtime/registry.hpp"

#ifndef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/mean_pool_backward.cpp"
#endif
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/elementwise-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace assay::cpu::of_mean_pool_backward::HWY_NAMESPACE {
using namespace cpu::HWY_NAMESPACE;
namespace {

struct Quotient {
  float divisor;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V dy) const {
    return hn::Div(dy, hn::Set(d, divisor));
  }
};

struct Zero {
  template <class D>
  HWY_INLINE auto operator()(D d) const {
    return hn::Zero(d);
  }
};

/// Fills `length` rows with dy / length, and the rest up to `rows` with zeros.
void spread(Index rows, Index length, Index n, const float* dy, Rows<float> dx) {
  map_rows(length, n, Quotient{static_cast<float>(length)}, dx, Rows<const float>{dy, 0});
  map_rows(rows - length, n, Zero{}, Rows<float>{dx.data + length * dx.ld, dx.ld});
}

}  // namespace
}  // namespace assay::cpu::of_mean_pool_backward::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::cpu::of_mean_pool_backward {
namespace {

HWY_EXPORT(spread);

using ops::MeanPoolBackwardArgs;

/// The naive kernel in SIMD.
void highway(const MeanPoolBackwardArgs& args, Device&) {
  for (Index b = 0; b < args.b; ++b) HWY_DYNAMIC_DISPATCH(spread)
  (args.s, args.lengths(b), args.h, args.dy.data() + b * args.dy.stride(0),
   Rows<float>{args.dx.data() + b * args.dx.stride(0), args.dx.stride(1)});
}

const KernelRegistration highway_kernel{{.id = "mean_pool_backward/cpu/highway",
                                         .summary = "SIMD, one pass over the rows",
                                         .run = &run_typed<MeanPoolBackwardArgs, &highway>,
                                         .priority = 1}};

}  // namespace
}  // namespace assay::cpu::of_mean_pool_backward
#endif
