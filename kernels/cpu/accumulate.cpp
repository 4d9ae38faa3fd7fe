// dst = dst + alpha src on the CPU.
#include "ops/accumulate.hpp"

#include "kernels/cpu/elementwise.hpp"
#include "runtime/registry.hpp"

#ifndef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/accumulate.cpp"
#endif
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/elementwise-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace assay::cpu::of_accumulate::HWY_NAMESPACE {
using namespace cpu::HWY_NAMESPACE;
namespace {

/// dst + alpha src, fused.
struct Fused {
  float alpha;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x, V src) const {
    return hn::MulAdd(hn::Set(d, alpha), src, x);
  }
};

void accumulate_rows(Index m, Index n, float alpha, Rows<float> dst, Rows<const float> src) {
  map_rows(m, n, Fused{alpha}, dst, dst, src);
}

}  // namespace
}  // namespace assay::cpu::of_accumulate::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::cpu::of_accumulate {
namespace {

HWY_EXPORT(accumulate_rows);

using ops::AccumulateArgs;

/// dst[i,j] += alpha src[i,j]
///   dst, src (m,n): row-major float32, any leading dimension; they share no memory.
/// Two roundings an element, one where fused. Cost 12 m n bytes.
void naive(const AccumulateArgs& args, Device&) {
  const auto alpha = static_cast<float>(args.alpha);
  for (Index i = 0; i < args.m; ++i)
    for (Index j = 0; j < args.n; ++j) args.dst(i, j) += alpha * args.src(i, j);
}

/// The same in SIMD: one pass, tails by masks.
void highway(const AccumulateArgs& args, Device&) {
  HWY_DYNAMIC_DISPATCH(accumulate_rows)
  (args.m, args.n, static_cast<float>(args.alpha), rows_of(args.dst),
   Rows<const float>{args.src.data(), rows_of(args.src).ld});
}

const KernelRegistration naive_kernel{{.op = "accumulate",
                                       .id = "accumulate/cpu/naive",
                                       .source = "kernels/cpu/accumulate.cpp",
                                       .summary = "two loops",
                                       .run = &run_typed<AccumulateArgs, &naive>}};
const KernelRegistration highway_kernel{{.op = "accumulate",
                                         .id = "accumulate/cpu/highway",
                                         .source = "kernels/cpu/accumulate.cpp",
                                         .summary = "SIMD, one pass over the rows",
                                         .run = &run_typed<AccumulateArgs, &highway>,
                                         .priority = 1}};

}  // namespace
}  // namespace assay::cpu::of_accumulate
#endif
