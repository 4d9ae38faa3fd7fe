// C = Aᵀ·B on the CPU, by OpenBLAS or in register tiles. A is stored [k, m].
#include "ops/matmul_tn.hpp"

#include "kernels/cpu/gemm.hpp"
#include "runtime/registry.hpp"

namespace assay::cpu {
namespace {

using ops::MatmulTnArgs;

void openblas(const MatmulTnArgs& args, Device&) { openblas_gemm(gemm_call(args, true, false)); }
void tiled(const MatmulTnArgs& args, Device&) { tiled_gemm(gemm_call(args, true, false)); }
void dispatch(const MatmulTnArgs& args, Device&) { dispatch_gemm(gemm_call(args, true, false)); }
void widened(const MatmulTnArgs& args, Device&) { widened_gemm(product_of(args, true, false)); }
std::optional<std::string> refusal(const MatmulTnArgs& args) { return openblas_refusal(gemm_call(args, true, false)); }

const KernelRegistration openblas_kernel{{.id = "matmul_tn/cpu/openblas",
                                          .batch_invariant = false,
                                          .summary = "cblas_sgemm",
                                          .run = &run_typed<MatmulTnArgs, &openblas>,
                                          .refuse = &refuse_typed<MatmulTnArgs, &refusal>}};
const KernelRegistration tiled_kernel{{.id = "matmul_tn/cpu/highway_tiled",
                                       .summary = "register tiles of 12x32 (AVX-512) or 6x16 (AVX2)",
                                       .run = &run_typed<MatmulTnArgs, &tiled>}};
const KernelRegistration dispatch_kernel{{.id = "matmul_tn/cpu/dispatch",
                                          .batch_invariant = false,
                                          .summary = "highway_tiled for small products, else OpenBLAS",
                                          .run = &run_typed<MatmulTnArgs, &dispatch>,
                                          .priority = 1}};

KernelRegistration widened_kernel(DType storage, std::string_view id) {
  return KernelRegistration({.id = id,
                             .arithmetic = widened_arithmetic(storage),
                             .storage = storage,
                             .summary = kWidened,
                             .run = &run_typed<MatmulTnArgs, &widened>,
                             .priority = 1});
}
const KernelRegistration widened_kernels[] = {widened_kernel(DType::f16, "matmul_tn/cpu/highway_tiled_f16"),
                                              widened_kernel(DType::bf16, "matmul_tn/cpu/highway_tiled_bf16")};

}  // namespace
}  // namespace assay::cpu
