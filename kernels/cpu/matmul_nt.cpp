// C = A·Bᵀ on the CPU, from the triple loop to register tiles. B is stored [n, k], as weights are: [out, in].
#include "ops/matmul_nt.hpp"

#include "kernels/cpu/gemm.hpp"
#include "runtime/registry.hpp"

namespace assay::cpu {
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

void openblas(const MatmulNtArgs& args, Device&) { openblas_gemm(gemm_call(args, false, true)); }
void tiled(const MatmulNtArgs& args, Device&) { tiled_gemm(gemm_call(args, false, true)); }
void dispatch(const MatmulNtArgs& args, Device&) { dispatch_gemm(gemm_call(args, false, true)); }
std::optional<std::string> refusal(const MatmulNtArgs& args) { return openblas_refusal(gemm_call(args, false, true)); }

const KernelRegistration naive_kernel{{.op = "matmul_nt",
                                       .id = "matmul_nt/cpu/naive",
                                       .source = "kernels/cpu/matmul_nt.cpp",
                                       .summary = "three loops in the order i, p, j",
                                       .run = &run_typed<MatmulNtArgs, &naive>,
                                       .priority = -1}};
const KernelRegistration openblas_kernel{{.op = "matmul_nt",
                                          .id = "matmul_nt/cpu/openblas",
                                          .batch_invariant = false,
                                          .source = "kernels/cpu/openblas_gemm.cpp",
                                          .summary = "cblas_sgemm",
                                          .run = &run_typed<MatmulNtArgs, &openblas>,
                                          .refuse = &refuse_typed<MatmulNtArgs, &refusal>}};
const KernelRegistration tiled_kernel{{.op = "matmul_nt",
                                       .id = "matmul_nt/cpu/highway_tiled",
                                       .source = "kernels/cpu/tiled_gemm.cpp",
                                       .summary = "register tiles of 12x32 (AVX-512) or 6x16 (AVX2), one thread",
                                       .run = &run_typed<MatmulNtArgs, &tiled>}};
const KernelRegistration dispatch_kernel{{.op = "matmul_nt",
                                          .id = "matmul_nt/cpu/dispatch",
                                          .batch_invariant = false,
                                          .source = "kernels/cpu/dispatch_gemm.cpp",
                                          .summary = "highway_tiled for small products, else OpenBLAS",
                                          .run = &run_typed<MatmulNtArgs, &dispatch>,
                                          .priority = 1}};

}  // namespace
}  // namespace assay::cpu
