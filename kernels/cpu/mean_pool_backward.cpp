// The gradient of the mean of the first tokens of each sequence on the CPU.
#include "ops/mean_pool_backward.hpp"

#include <algorithm>

#include "kernels/cpu/elementwise.hpp"
#include "runtime/registry.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/mean_pool_backward.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/elementwise-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace assay::cpu::HWY_NAMESPACE {
namespace {

struct Quotient {
  float divisor;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V dy) const {
    return hn::Div(dy, hn::Set(d, divisor));
  }
};

void divide(Index n, float divisor, const float* dy, float* dx) {
  map_rows(1, n, Quotient{divisor}, Rows<float>{dx, n}, Rows<const float>{dy, n});
}

}  // namespace
}  // namespace assay::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::cpu {
namespace {

HWY_EXPORT(divide);

using ops::MeanPoolBackwardArgs;

/// dx[b,i,j] = dy[b,j] / lengths[b] where i < lengths[b], else 0
///   dy (b,h), dx (b,s,h): row-major float32, any outer strides; lengths (b) from 1 to s; dx shares no memory with dy.
/// One rounding an element.
void naive(const MeanPoolBackwardArgs& args, Device&) {
  for (Index b = 0; b < args.b; ++b)
    for (Index i = 0; i < args.s; ++i)
      for (Index j = 0; j < args.h; ++j)
        args.dx(b, i, j) = i < args.lengths(b) ? args.dy(b, j) / static_cast<float>(args.lengths(b)) : 0.0F;
}

/// The same: the first row is divided, the others are copies of it, padding is filled.
void highway(const MeanPoolBackwardArgs& args, Device&) {
  for (Index b = 0; b < args.b; ++b) {
    const auto row = [&](Index i) { return args.dx.data() + b * args.dx.stride(0) + i * args.dx.stride(1); };
    const Index length = args.lengths(b);
    HWY_DYNAMIC_DISPATCH(divide)(args.h, static_cast<float>(length), args.dy.data() + b * args.dy.stride(0), row(0));
    for (Index i = 1; i < length; ++i) std::copy_n(row(0), args.h, row(i));
    for (Index i = length; i < args.s; ++i) std::fill_n(row(i), args.h, 0.0F);
  }
}

const KernelRegistration naive_kernel{{.op = "mean_pool_backward",
                                       .id = "mean_pool_backward/cpu/naive",
                                       .source = "kernels/cpu/mean_pool_backward.cpp",
                                       .summary = "three loops",
                                       .run = &run_typed<MeanPoolBackwardArgs, &naive>}};
const KernelRegistration highway_kernel{{.op = "mean_pool_backward",
                                         .id = "mean_pool_backward/cpu/highway",
                                         .source = "kernels/cpu/mean_pool_backward.cpp",
                                         .summary = "one row divided in SIMD, the others copied",
                                         .run = &run_typed<MeanPoolBackwardArgs, &highway>,
                                         .priority = 1}};

}  // namespace
}  // namespace assay::cpu
#endif
