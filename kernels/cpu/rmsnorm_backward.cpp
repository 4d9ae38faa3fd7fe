// Gradients of rmsnorm on the CPU.
#include "ops/rmsnorm_backward.hpp"

#include <algorithm>

#include "runtime/registry.hpp"

#ifndef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/rmsnorm_backward.cpp"
#endif
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/storage-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace assay::cpu::of_rmsnorm_backward::HWY_NAMESPACE {
using namespace cpu::HWY_NAMESPACE;
namespace {

/// Computes, row by row, the projection, dx, and the terms of dweight, which is summed over rows in ascending order.
template <class S>
void row_by_row(const ops::RmsnormBackwardArgs& args) {
  const hn::ScalableTag<float> d;
  const Index n = args.n, x_ld = row_stride(args.x), dy_ld = row_stride(args.dy), dx_ld = row_stride(args.dx);
  const auto* x = static_cast<const S*>(args.x.data());
  const auto* dy = static_cast<const S*>(args.dy.data());
  const float* const weight = args.weight.data();
  auto* dx = static_cast<S*>(args.dx.data());
  float* const dweight = args.dweight.data();
  std::fill_n(dweight, n, 0.0F);
  for (Index i = 0; i < args.rows; ++i, x += x_ld, dy += dy_ld, dx += dx_ld) {
    const float rrms = args.rrms.data()[i];
    const auto scale = hn::Set(d, rrms);
    auto even = hn::Zero(d), odd = even;
    bool on_even = true;
    for_each_vector(d, n, [&](Index j, std::size_t count) {
      const auto g = load_first(d, dy + j, count), normalized = hn::Mul(load_first(d, x + j, count), scale);
      const auto a = hn::Mul(g, load_first(d, weight + j, count));
      auto& sum = on_even ? even : odd;
      sum = hn::MulAdd(a, normalized, sum);
      on_even = !on_even;
      store_first(d, hn::MulAdd(g, normalized, load_first(d, dweight + j, count)), dweight + j, count);
    });
    const float projection = hn::GetLane(hn::SumOfLanes(d, hn::Add(even, odd)));
    const auto mean = hn::Set(d, projection / static_cast<float>(n));
    for_each_vector(d, n, [&](Index j, std::size_t count) {
      const auto a = hn::Mul(load_first(d, dy + j, count), load_first(d, weight + j, count));
      const auto normalized = hn::Mul(load_first(d, x + j, count), scale);
      store_first(d, hn::Mul(scale, hn::NegMulAdd(normalized, mean, a)), dx + j, count);
    });
  }
}

void rmsnorm_backward_rows(const ops::RmsnormBackwardArgs& args) {
  with_storage(args.x.dtype(), [&]<class S>(S) { row_by_row<S>(args); });
}

}  // namespace
}  // namespace assay::cpu::of_rmsnorm_backward::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::cpu::of_rmsnorm_backward {
namespace {

HWY_EXPORT(rmsnorm_backward_rows);

using ops::RmsnormBackwardArgs;

/// The naive kernel in SIMD.
void highway(const RmsnormBackwardArgs& args, Device&) { HWY_DYNAMIC_DISPATCH(rmsnorm_backward_rows)(args); }

KernelRegistration add(DType storage, std::string_view id) {
  return KernelRegistration({.id = id,
                             .storage = storage,
                             .summary = "both gradients in one pass over rows, one thread",
                             .run = &run_typed<RmsnormBackwardArgs, &highway>,
                             .priority = 1});
}

const KernelRegistration registrations[] = {
    add(DType::f32, "rmsnorm_backward/cpu/highway"),
    add(DType::f16, "rmsnorm_backward/cpu/highway_f16"),
    add(DType::bf16, "rmsnorm_backward/cpu/highway_bf16"),
};

}  // namespace
}  // namespace assay::cpu::of_rmsnorm_backward
#endif
