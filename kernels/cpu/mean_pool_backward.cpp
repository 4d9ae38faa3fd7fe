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

/// Fills lengths[b] rows of each sequence with dy / length, and the rest with zeros.
void spread(const ops::MeanPoolBackwardArgs& args) {
  with_storage(args.dx.dtype(), [&]<class S>(S) {
    for (Index b = 0; b < args.b; ++b) {
      const Index length = args.lengths(b), ld = args.dx.stride(1);
      S* const dx = static_cast<S*>(args.dx.data()) + b * args.dx.stride(0);
      const Rows<const S> dy{static_cast<const S*>(args.dy.data()) + b * args.dy.stride(0), 0};
      map_rows(length, args.h, Quotient{static_cast<float>(length)}, Rows<S>{dx, ld}, dy);
      map_rows(args.s - length, args.h, Zero{}, Rows<S>{dx + length * ld, ld});
    }
  });
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
void highway(const MeanPoolBackwardArgs& args, Device&) { HWY_DYNAMIC_DISPATCH(spread)(args); }

KernelRegistration add(DType storage, std::string_view id) {
  return KernelRegistration({.id = id,
                             .storage = storage,
                             .summary = "SIMD, one pass over the rows",
                             .run = &run_typed<MeanPoolBackwardArgs, &highway>,
                             .priority = 1});
}

const KernelRegistration registrations[] = {
    add(DType::f32, "mean_pool_backward/cpu/highway"),
    add(DType::f16, "mean_pool_backward/cpu/highway_f16"),
    add(DType::bf16, "mean_pool_backward/cpu/highway_bf16"),
};

}  // namespace
}  // namespace assay::cpu::of_mean_pool_backward
#endif
