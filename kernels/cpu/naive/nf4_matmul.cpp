// DX = DY·W on the CPU, in plain loops.
#include "ops/nf4_matmul.hpp"

#include "core/nf4.hpp"
#include "runtime/registry.hpp"

namespace assay::cpu::of_nf4_matmul {
namespace {

using ops::Nf4MatmulArgs;

/// dx[i,p] = sum_j dy[i,j] w[j,p], w[j,p] = code[q[j,p]] absmax[j, p/64]
///   dy (m,n), codes (n, 32 b), absmax (n, b), dx (m,k), b = ceil(k/64): row-major, any leading dimension; dx shares no
///   memory.
/// j ascending. Error at most n·u·sum_j |dy[i,j]||w[j,p]|. Cost 2mkn flops.
void naive(const Nf4MatmulArgs& args, Device&) {
  for (Index i = 0; i < args.m; ++i)
    for (Index p = 0; p < args.k; ++p) {
      float sum = 0.0F;
      for (Index j = 0; j < args.n; ++j)
        sum += args.dy(i, j) * (kNf4[nf4_code(&args.codes(j, 0), p)] * nf4_scale(args.absmax(j, p / kNf4Block)));
      args.dx(i, p) = sum;
    }
}

const KernelRegistration naive_kernel{{.id = "nf4_matmul/cpu/naive",
                                       .summary = "three loops, every weight decoded where it is used",
                                       .run = &run_typed<Nf4MatmulArgs, &naive>}};

}  // namespace
}  // namespace assay::cpu::of_nf4_matmul
