// C = A·B on the CPU, from the triple loop to register tiles.
#include "ops/matmul.hpp"

#include "kernels/cpu/gemm.hpp"
#include "runtime/registry.hpp"

namespace assay::cpu {
namespace {

using ops::MatmulArgs;

/// c[i,j] = sum_p a[i,p] * b[p,j]
///   a (m,k), b (k,n), c (m,n): row-major float32, any leading dimension; c shares no memory with a or b.
/// In the order i, p, j: the inner loop runs along rows of b and c, and each c[i,j] is still one sum over p in
/// ascending order. Error at most k·u·sum_p |a[i,p]||b[p,j]|. Cost 2mkn flops.
void naive(const MatmulArgs& args, Device&) {
  for (Index i = 0; i < args.m; ++i) {
    for (Index j = 0; j < args.n; ++j) args.c(i, j) = 0.0F;
    for (Index p = 0; p < args.k; ++p)
      for (Index j = 0; j < args.n; ++j) args.c(i, j) += args.a(i, p) * args.b(p, j);
  }
}

void openblas(const MatmulArgs& args, Device&) { openblas_gemm(gemm_call(args, false, false)); }
void tiled(const MatmulArgs& args, Device&) { tiled_gemm(gemm_call(args, false, false)); }
void dispatch(const MatmulArgs& args, Device&) { dispatch_gemm(gemm_call(args, false, false)); }
std::optional<std::string> refusal(const MatmulArgs& args) { return openblas_refusal(gemm_call(args, false, false)); }

const KernelRegistration naive_kernel{{.op = "matmul",
                                       .id = "matmul/cpu/naive",
                                       .source = "kernels/cpu/matmul.cpp",
                                       .summary = "three loops in the order i, p, j",
                                       .run = &run_typed<MatmulArgs, &naive>,
                                       .priority = -1}};
const KernelRegistration openblas_kernel{{.op = "matmul",
                                          .id = "matmul/cpu/openblas",
                                          .batch_invariant = false,
                                          .source = "kernels/cpu/openblas_gemm.cpp",
                                          .summary = "cblas_sgemm",
                                          .run = &run_typed<MatmulArgs, &openblas>,
                                          .refuse = &refuse_typed<MatmulArgs, &refusal>}};
const KernelRegistration tiled_kernel{{.op = "matmul",
                                       .id = "matmul/cpu/highway_tiled",
                                       .source = "kernels/cpu/tiled_gemm.cpp",
                                       .summary = "register tiles of 12x32 (AVX-512) or 6x16 (AVX2), one thread",
                                       .run = &run_typed<MatmulArgs, &tiled>}};
const KernelRegistration dispatch_kernel{{.op = "matmul",
                                          .id = "matmul/cpu/dispatch",
                                          .batch_invariant = false,
                                          .source = "kernels/cpu/dispatch_gemm.cpp",
                                          .summary = "highway_tiled for small products, else OpenBLAS",
                                          .run = &run_typed<MatmulArgs, &dispatch>,
                                          .priority = 1}};

}  // namespace
}  // namespace assay::cpu
