// Y = X·Wᵀ on the CPU, in plain loops.
#include "ops/nf4_matmul_nt.hpp"

#include "core/nf4.hpp"
#include "runtime/registry.hpp"

namespace assay::cpu::of_nf4_matmul_nt {
namespace {

using ops::Nf4MatmulNtArgs;

/// y[i,j] = sum_p x[i,p] w[j,p], w[j,p] = code[q[j,p]] absmax[j, p/64]
///   x (m,k), codes (n, 32 b), absmax (n, b), y (m,n), b = ceil(k/64): row-major, any leading dimension; y shares no
///   memory.
/// p ascending. Error at most k·u·sum_p |x[i,p]||w[j,p]|. Cost 2mkn flops.
void naive(const Nf4MatmulNtArgs& args, Device&) {
  for (Index i = 0; i < args.m; ++i)
    for (Index j = 0; j < args.n; ++j) {
      float sum = 0.0F;
      for (Index p = 0; p < args.k; ++p)
        sum += args.x(i, p) * (kNf4[nf4_code(&args.codes(j, 0), p)] * nf4_scale(args.absmax(j, p / kNf4Block)));
      args.y(i, j) = sum;
    }
}

const KernelRegistration naive_kernel{{.id = "nf4_matmul_nt/cpu/naive",
                                       .summary = "three loops, every weight decoded where it is used",
                                       .run = &run_typed<Nf4MatmulNtArgs, &naive>}};

}  // namespace
}  // namespace assay::cpu::of_nf4_matmul_nt
