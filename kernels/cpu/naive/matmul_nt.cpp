// C = A·Bᵀ on the CPU, in plain loops.
#include "ops/matmul_nt.hpp"

#include "runtime/registry.hpp"

namespace assay::cpu::of_matmul_nt {
namespace {

using ops::MatmulNtArgs;

/// c[i,j] = sum_p a[i,p] * b[j,p]
///   a (m,k), b (n,k), c (m,n): row-major float32, any leading dimension; c shares no memory with a or b.
/// In the order i, j, p: both factors are read along rows. Error at most k·u·sum_p |a[i,p]||b[j,p]|. Cost 2mkn flops.
void naive(const MatmulNtArgs& args, Device&) {
  for (Index i = 0; i < args.m; ++i)
    for (Index j = 0; j < args.n; ++j) {
      float sum = 0.0F;
      for (Index p = 0; p < args.k; ++p) sum += args.a(i, p) * args.b(j, p);
      args.c(i, j) = sum;
    }
}

const KernelRegistration naive_kernel{{.id = "matmul_nt/cpu/naive",
                                       .summary = "three loops in the order i, p, j",
                                       .run = &run_typed<MatmulNtArgs, &naive>,
                                       .priority = -1}};

}  // namespace
}  // namespace assay::cpu::of_matmul_nt
