// The mean of the first tokens of each sequence on the CPU.
#include "ops/mean_pool.hpp"

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

void mean_of_rows(Index rows, Index n, Rows<const float> x, float* mean) {
  sum_columns(rows, n, x, mean, nullptr);
  const hn::ScalableTag<float> d;
  const auto divisor = hn::Set(d, static_cast<float>(rows));
  const Index lanes = static_cast<Index>(hn::Lanes(d));
  Index j = 0;
  for (; j + lanes <= n; j += lanes) hn::StoreU(hn::Div(hn::LoadU(d, mean + j), divisor), d, mean + j);
  if (j == n) return;
  const auto mask = hn::FirstN(d, static_cast<std::size_t>(n - j));
  store_masked(hn::Div(load_masked(d, mean + j, mask), divisor), d, mean + j, mask);
}

}  // namespace
}  // namespace assay::cpu::of_mean_pool::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::cpu::of_mean_pool {
namespace {

HWY_EXPORT(mean_of_rows);

using ops::MeanPoolArgs;

/// The naive kernel in SIMD along the rows; the same order of summation.
void highway(const MeanPoolArgs& args, Device&) {
  for (Index b = 0; b < args.b; ++b) {
    const Rows<const float> x{args.x.data() + b * args.x.stride(0), args.x.stride(1)};
    HWY_DYNAMIC_DISPATCH(mean_of_rows)(args.lengths(b), args.h, x, args.y.data() + b * args.y.stride(0));
  }
}

const KernelRegistration highway_kernel{{.id = "mean_pool/cpu/highway",
                                         .summary = "SIMD along rows, four tokens at a time",
                                         .run = &run_typed<MeanPoolArgs, &highway>,
                                         .priority = 1}};

}  // namespace
}  // namespace assay::cpu::of_mean_pool
#endif
