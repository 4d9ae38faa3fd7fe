// Y = X·Wᵀ for W in Q4_K super-blocks on the CPU, in plain loops.
#include "ops/q4_k_matmul_nt.hpp"

#include "core/q4_k.hpp"
#include "runtime/registry.hpp"

namespace assay::cpu::of_q4_k_matmul_nt {
namespace {

using ops::Q4KMatmulNtArgs;

/// y[i,j] = sum_p x[i,p] w[j,p]
///   x (m,k), y (m,n): float32; blocks (n, ceil(k/256)*144): bytes, rows at multiples of 4, of which w (n,k) are the
///   values: row-major, any leading dimension; y shares no memory.
/// p ascending. Error at most k·u·sum_p |x[i,p]||w[j,p]|. Cost 2mkn flops.
void naive(const Q4KMatmulNtArgs& args, Device&) {
  for (Index i = 0; i < args.m; ++i)
    for (Index j = 0; j < args.n; ++j) {
      float sum = 0.0F;
      for (Index p = 0; p < args.k; ++p)
        sum += args.x(i, p) * q4_k::value_at(&args.blocks(j, p / q4_k::kValues * q4_k::kBytes), p % q4_k::kValues);
      args.y(i, j) = sum;
    }
}

const KernelRegistration naive_kernel{{.id = "q4_k_matmul_nt/cpu/naive",
                                       .summary = "three loops, every weight decoded where it is used",
                                       .run = &run_typed<Q4KMatmulNtArgs, &naive>}};

}  // namespace
}  // namespace assay::cpu::of_q4_k_matmul_nt
