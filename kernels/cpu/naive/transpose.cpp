// dst = srcᵀ on the CPU, in plain loops.
#include "ops/transpose.hpp"

#include "runtime/registry.hpp"

namespace assay::cpu::of_transpose {
namespace {

using ops::TransposeArgs;

/// dst[j,i] = src[i,j]
///   src (m,n), dst (n,m): row-major float32, any leading dimension; they share no memory.
/// Copies bit for bit, including NaN payloads and signs of zeros. Cost 2mn memory accesses.
void naive(const TransposeArgs& args, Device&) {
  for (Index i = 0; i < args.m; ++i)
    for (Index j = 0; j < args.n; ++j) args.dst(j, i) = args.src(i, j);
}

const KernelRegistration naive_kernel{
    {.id = "transpose/cpu/naive", .summary = "two loops", .run = &run_typed<TransposeArgs, &naive>, .priority = -1}};

}  // namespace
}  // namespace assay::cpu::of_transpose
