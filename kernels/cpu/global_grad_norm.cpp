// Euclidean norm of a gradient on the CPU. Reads g once: bound by memory bandwidth.
#include "ops/global_grad_norm.hpp"

#include <cmath>

#include "kernels/cpu/global_grad_norm.hpp"
#include "runtime/registry.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/global_grad_norm.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/simd-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace assay::cpu::HWY_NAMESPACE {
namespace {

float add_squares(const float* g, Index n) {
  constexpr int kSums = 8;
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const Index lanes = static_cast<Index>(hn::Lanes(d));
  V sum[kSums];
  for (V& s : sum) s = hn::Zero(d);
  Index i = 0;
  for (; i + kSums * lanes <= n; i += kSums * lanes)
#pragma GCC unroll 8
    for (int k = 0; k < kSums; ++k) {
      const V x = hn::LoadU(d, g + i + k * lanes);
      sum[k] = hn::MulAdd(x, x, sum[k]);
    }
  for (; i < n; i += lanes) {
    const V x = load_masked(d, g + i, hn::FirstN(d, static_cast<std::size_t>(std::min(lanes, n - i))));
    sum[0] = hn::MulAdd(x, x, sum[0]);
  }
  for (int step = kSums / 2; step > 0; step /= 2)
    for (int k = 0; k < step; ++k) sum[k] = hn::Add(sum[k], sum[k + step]);
  return hn::GetLane(hn::SumOfLanes(d, sum[0]));
}

void scale_all(float* g, Index n, float factor) {
  const hn::ScalableTag<float> d;
  const Index lanes = static_cast<Index>(hn::Lanes(d));
  const auto by = hn::Set(d, factor);
  Index i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(hn::Mul(hn::LoadU(d, g + i), by), d, g + i);
  if (i == n) return;
  const auto rest = hn::FirstN(d, static_cast<std::size_t>(n - i));
  store_masked(hn::Mul(load_masked(d, g + i, rest), by), d, g + i, rest);
}

}  // namespace
}  // namespace assay::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::cpu {

HWY_EXPORT(add_squares);
HWY_EXPORT(scale_all);

float sum_of_squares(const float* g, Index n) { return n == 0 ? 0.0F : HWY_DYNAMIC_DISPATCH(add_squares)(g, n); }
void scale_in_place(float* g, Index n, float factor) {
  if (n > 0) HWY_DYNAMIC_DISPATCH(scale_all)(g, n, factor);
}

namespace {

using ops::GlobalGradNormArgs;

void highway(const GlobalGradNormArgs& args, Device&) {
  args.norm(0) = std::sqrt(sum_of_squares(args.g.data(), args.n));
}

const KernelRegistration highway_kernel{{.id = "global_grad_norm/cpu/highway",
                                         .summary = "eight vector sums, one thread",
                                         .run = &run_typed<GlobalGradNormArgs, &highway>,
                                         .priority = 1}};

}  // namespace
}  // namespace assay::cpu
#endif
