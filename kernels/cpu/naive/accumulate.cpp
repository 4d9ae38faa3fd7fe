// dst = dst + alpha src on the CPU, in plain loops.
#include "ops/accumulate.hpp"

#include "runtime/registry.hpp"

namespace assay::cpu::of_accumulate {
namespace {

using ops::AccumulateArgs;

/// dst[i,j] += alpha src[i,j]
///   dst, src (m,n): row-major float32, any leading dimension; they share no memory.
/// Two roundings an element, or one if fused. Cost 12 m n bytes.
void naive(const AccumulateArgs& args, Device&) {
  const auto alpha = static_cast<float>(args.alpha);
  for (Index i = 0; i < args.m; ++i)
    for (Index j = 0; j < args.n; ++j) args.dst(i, j) += alpha * args.src(i, j);
}

const KernelRegistration naive_kernel{
    {.id = "accumulate/cpu/naive", .summary = "two loops", .run = &run_typed<AccumulateArgs, &naive>}};

}  // namespace
}  // namespace assay::cpu::of_accumulate
