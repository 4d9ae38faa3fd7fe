// The mean of the first tokens of each sequence on the CPU.
#include "ops/mean_pool.hpp"

#include <vector>

#include "kernels/cpu/elementwise.hpp"
#include "runtime/registry.hpp"

#ifndef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/mean_pool.cpp"
#endif
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/column_sum-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace assay::cpu::of_mean_pool::HWY_NAMESPACE {
using namespace cpu::HWY_NAMESPACE;
namespace {

template <class S>
void mean_of_rows(const ops::MeanPoolArgs& args, Index b, float* sums) {
  const Index rows = args.lengths(b);
  const Rows<const S> x{static_cast<const S*>(args.x.data()) + b * args.x.stride(0), args.x.stride(1)};
  sum_columns(rows, args.h, x, sums, nullptr);
  const hn::ScalableTag<float> d;
  const auto divisor = hn::Set(d, static_cast<float>(rows));
  S* const mean = static_cast<S*>(args.y.data()) + b * args.y.stride(0);
  for_each_vector(d, args.h, [&](Index j, std::size_t count) {
    store_first(d, hn::Div(load_first(d, sums + j, count), divisor), mean + j, count);
  });
}

void means(const ops::MeanPoolArgs& args) {
  std::vector<float> sums(static_cast<std::size_t>(args.h));
  with_storage(args.x.dtype(), [&]<class S>(S) {
    for (Index b = 0; b < args.b; ++b) mean_of_rows<S>(args, b, sums.data());
  });
}

}  // namespace
}  // namespace assay::cpu::of_mean_pool::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::cpu::of_mean_pool {
namespace {

HWY_EXPORT(means);

using ops::MeanPoolArgs;

/// The naive kernel in SIMD along the rows; the same order of summation.
void highway(const MeanPoolArgs& args, Device&) { HWY_DYNAMIC_DISPATCH(means)(args); }

KernelRegistration add(DType storage, std::string_view id) {
  return KernelRegistration({.id = id,
                             .storage = storage,
                             .summary = "SIMD along rows, four tokens at a time",
                             .run = &run_typed<MeanPoolArgs, &highway>,
                             .priority = 1});
}

const KernelRegistration registrations[] = {
    add(DType::f32, "mean_pool/cpu/highway"),
    add(DType::f16, "mean_pool/cpu/highway_f16"),
    add(DType::bf16, "mean_pool/cpu/highway_bf16"),
};

}  // namespace
}  // namespace assay::cpu::of_mean_pool
#endif
