// C = A·Bᵀ on the CPU, by OpenBLAS or in register tiles. B is stored [n, k], as weights are: [out, in].
#include "ops/matmul_nt.hpp"

#include "kernels/cpu/gemm.hpp"
#include "runtime/registry.hpp"

namespace assay::cpu {
namespace {

using ops::MatmulNtArgs;

void openblas(const MatmulNtArgs& args, Device&) { openblas_gemm(gemm_call(args, false, true)); }
void tiled(const MatmulNtArgs& args, Device&) { tiled_gemm(gemm_call(args, false, true)); }
void dispatch(const MatmulNtArgs& args, Device&) { dispatch_gemm(gemm_call(args, false, true)); }
void widened(const MatmulNtArgs& args, Device&) { widened_gemm(product_of(args, false, true)); }
std::optional<std::string> refusal(const MatmulNtArgs& args) { return openblas_refusal(gemm_call(args, false, true)); }

const KernelRegistration openblas_kernel{{.id = "matmul_nt/cpu/openblas",
                                          .batch_invariant = false,
                                          .summary = "cblas_sgemm",
                                          .run = &run_typed<MatmulNtArgs, &openblas>,
                                          .refuse = &refuse_typed<MatmulNtArgs, &refusal>}};
const KernelRegistration tiled_kernel{{.id = "matmul_nt/cpu/highway_tiled",
                                       .summary = "register tiles of 12x32 (AVX-512) or 6x16 (AVX2)",
                                       .run = &run_typed<MatmulNtArgs, &tiled>}};
const KernelRegistration dispatch_kernel{{.id = "matmul_nt/cpu/dispatch",
                                          .batch_invariant = false,
                                          .summary = "highway_tiled for small products, else OpenBLAS",
                                          .run = &run_typed<MatmulNtArgs, &dispatch>,
                                          .priority = 1}};

KernelRegistration widened_kernel(DType storage, std::string_view id) {
  return KernelRegistration({.id = id,
                             .arithmetic = widened_arithmetic(storage),
                             .storage = storage,
                             .summary = kWidened,
                             .run = &run_typed<MatmulNtArgs, &widened>,
                             .priority = 1});
}
const KernelRegistration widened_kernels[] = {widened_kernel(DType::f16, "matmul_nt/cpu/highway_tiled_f16"),
                                              widened_kernel(DType::bf16, "matmul_nt/cpu/highway_tiled_bf16")};

}  // namespace
}  // namespace assay::cpu
