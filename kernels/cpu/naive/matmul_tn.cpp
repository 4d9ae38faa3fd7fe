// C = Aᵀ·B on the CPU, in plain loops.
#include "ops/matmul_tn.hpp"

#include "runtime/registry.hpp"

namespace assay::cpu::of_matmul_tn {
namespace {

using ops::MatmulTnArgs;

/// c[i,j] = sum_p a[p,i] * b[p,j]
///   a (k,m), b (k,n), c (m,n): row-major float32, any leading dimension; c shares no memory with a or b.
/// In the order i, p, j: the inner loop runs along rows of b and c. Error at most k·u·sum_p |a[p,i]||b[p,j]|.
/// Cost 2mkn flops.
void naive(const MatmulTnArgs& args, Device&) {
  for (Index i = 0; i < args.m; ++i) {
    for (Index j = 0; j < args.n; ++j) args.c(i, j) = 0.0F;
    for (Index p = 0; p < args.k; ++p)
      for (Index j = 0; j < args.n; ++j) args.c(i, j) += args.a(p, i) * args.b(p, j);
  }
}

const KernelRegistration naive_kernel{{.id = "matmul_tn/cpu/naive",
                                       .summary = "three loops in the order i, p, j",
                                       .run = &run_typed<MatmulTnArgs, &naive>,
                                       .priority = -1}};

}  // namespace
}  // namespace assay::cpu::of_matmul_tn
