// Gradient of softmax on the CPU.
#include "ops/softmax_backward.hpp"

#include "runtime/registry.hpp"

#ifndef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/softmax_backward.cpp"
#endif
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/storage-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace assay::cpu::of_softmax_backward::HWY_NAMESPACE {
using namespace cpu::HWY_NAMESPACE;
namespace {

template <class S>
void row_by_row(const ops::SoftmaxBackwardArgs& args) {
  const hn::ScalableTag<float> d;
  const Index n = args.n, y_ld = row_stride(args.y), dy_ld = row_stride(args.dy), dx_ld = row_stride(args.dx);
  const auto* y = static_cast<const S*>(args.y.data());
  const auto* dy = static_cast<const S*>(args.dy.data());
  auto* dx = static_cast<S*>(args.dx.data());
  for (Index i = 0; i < args.rows; ++i, y += y_ld, dy += dy_ld, dx += dx_ld) {
    auto even = hn::Zero(d), odd = even;
    bool on_even = true;
    for_each_vector(d, n, [&](Index j, std::size_t count) {
      auto& sum = on_even ? even : odd;
      sum = hn::MulAdd(load_first(d, y + j, count), load_first(d, dy + j, count), sum);
      on_even = !on_even;
    });
    const auto mean = hn::Set(d, hn::GetLane(hn::SumOfLanes(d, hn::Add(even, odd))));
    for_each_vector(d, n, [&](Index j, std::size_t count) {
      const auto rest = hn::Sub(load_first(d, dy + j, count), mean);
      store_first(d, hn::Mul(load_first(d, y + j, count), rest), dx + j, count);
    });
  }
}

void softmax_backward_rows(const ops::SoftmaxBackwardArgs& args) {
  with_storage(args.y.dtype(), [&]<class S>(S) { row_by_row<S>(args); });
}

}  // namespace
}  // namespace assay::cpu::of_softmax_backward::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::cpu::of_softmax_backward {
namespace {

HWY_EXPORT(softmax_backward_rows);

using ops::SoftmaxBackwardArgs;

/// The naive kernel in SIMD.
void highway(const SoftmaxBackwardArgs& args, Device&) { HWY_DYNAMIC_DISPATCH(softmax_backward_rows)(args); }

KernelRegistration add(DType storage, std::string_view id) {
  return KernelRegistration({.id = id,
                             .storage = storage,
                             .summary = "two vector sums a row, one thread",
                             .run = &run_typed<SoftmaxBackwardArgs, &highway>,
                             .priority = 1});
}

const KernelRegistration registrations[] = {
    add(DType::f32, "softmax_backward/cpu/highway"),
    add(DType::f16, "softmax_backward/cpu/highway_f16"),
    add(DType::bf16, "softmax_backward/cpu/highway_bf16"),
};

}  // namespace
}  // namespace assay::cpu::of_softmax_backward
#endif
