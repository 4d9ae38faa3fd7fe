// Weighted cross-entropy on the CPU.
#include "ops/cross_entropy.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/registry.hpp"

#ifndef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/cross_entropy.cpp"
#endif
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/functions-inl.hpp"

#ifndef ASSAY_KERNELS_CPU_CROSS_ENTROPY_ROW
#define ASSAY_KERNELS_CPU_CROSS_ENTROPY_ROW
namespace assay::cpu::of_cross_entropy {
/// The maximum of a row's logits, and the logarithm of sum_j exp(x[j] - maximum).
struct RowSum {
  float maximum, log_sum;
};
}  // namespace assay::cpu::of_cross_entropy
#endif

HWY_BEFORE_NAMESPACE();
namespace assay::cpu::of_cross_entropy::HWY_NAMESPACE {
using namespace cpu::HWY_NAMESPACE;
namespace {

/// Makes two passes over a row; the second hits the cache. Lanes past the end hold -inf, whose exponential is 0.
void sum_row(const float* x, Index n, RowSum& row) {
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const Index lanes = static_cast<Index>(hn::Lanes(d)), whole = n / lanes * lanes;
  const auto rest = hn::FirstN(d, static_cast<std::size_t>(n - whole));
  const V lowest = hn::Set(d, -std::numeric_limits<float>::infinity());
  const V tail = whole < n ? hn::IfThenElse(rest, load_masked(d, x + whole, rest), lowest) : lowest;
  V top = tail, second = lowest;
  Index j = 0;
  for (; j + 2 * lanes <= whole; j += 2 * lanes) {
    top = hn::Max(top, hn::LoadU(d, x + j));
    second = hn::Max(second, hn::LoadU(d, x + j + lanes));
  }
  if (j < whole) top = hn::Max(top, hn::LoadU(d, x + j));
  const float maximum = hn::GetLane(hn::MaxOfLanes(d, hn::Max(top, second)));
  const V m = hn::Set(d, maximum);
  V even = whole < n ? exp_of_negative(d, hn::Sub(tail, m)) : hn::Zero(d), odd = hn::Zero(d);
  // If the maximum is -inf, lanes past the end give NaN (-inf - -inf): clear them.
  if (whole < n) even = hn::IfThenElseZero(rest, even);
  for (j = 0; j + 2 * lanes <= whole; j += 2 * lanes) {
    even = hn::Add(even, exp_of_negative(d, hn::Sub(hn::LoadU(d, x + j), m)));
    odd = hn::Add(odd, exp_of_negative(d, hn::Sub(hn::LoadU(d, x + j + lanes), m)));
  }
  if (j < whole) even = hn::Add(even, exp_of_negative(d, hn::Sub(hn::LoadU(d, x + j), m)));
  row = {maximum, std::log(hn::GetLane(hn::SumOfLanes(d, hn::Add(even, odd))))};
}

}  // namespace
}  // namespace assay::cpu::of_cross_entropy::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::cpu::of_cross_entropy {
namespace {

HWY_EXPORT(sum_row);

using ops::CrossEntropyArgs;

/// loss[i] = weights[y] ((m - logits[i,y]) + log sum_j exp(logits[i,j] - m)), y = targets[i]; also writes logsumexp[i],
/// and total = sum_i loss[i] / normalizer. logits (rows, classes): any leading dimension. No output shares memory with
/// an input. Error: the contract's bound. Cost: two passes over each row, of which one reads memory.
void highway(const CrossEntropyArgs& args, Device&) {
  float sum = 0, weight = 0;
  for (Index i = 0; i < args.rows; ++i) {
    const float* const x = args.logits.data() + i * args.logits.stride(0);
    RowSum row{};
    HWY_DYNAMIC_DISPATCH(sum_row)(x, args.classes, row);
    const Index y = args.targets(i);
    args.logsumexp(i) = row.maximum + row.log_sum;
    args.loss(i) = args.weights(y) * ((row.maximum - x[y]) + row.log_sum);
    sum += args.loss(i);
    weight += args.weights(y);
  }
  const bool mean = args.reduction == 1;
  args.normalizer(0) = mean ? weight : 1.0F;
  args.total(0) = mean ? sum / weight : sum;
}

const KernelRegistration highway_kernel{{.id = "cross_entropy/cpu/highway",
                                         .arithmetic = {.functions = FunctionLibrary::highway},
                                         .summary = "two vector sums per row, maximum first, one thread",
                                         .run = &run_typed<CrossEntropyArgs, &highway>,
                                         .priority = 1}};

}  // namespace
}  // namespace assay::cpu::of_cross_entropy
#endif
