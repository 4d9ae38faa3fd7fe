// C = A·B on the CPU, by OpenBLAS or in register tiles.
#include "ops/matmul.hpp"

#include "kernels/cpu/gemm.hpp"
#include "runtime/registry.hpp"

namespace assay::cpu {
namespace {

using ops::MatmulArgs;

void openblas(const MatmulArgs& args, Device&) { openblas_gemm(gemm_call(args, false, false)); }
void tiled(const MatmulArgs& args, Device&) { tiled_gemm(gemm_call(args, false, false)); }
void dispatch(const MatmulArgs& args, Device&) { dispatch_gemm(gemm_call(args, false, false)); }
void widened(const MatmulArgs& args, Device&) { widened_gemm(product_of(args, false, false)); }
std::optional<std::string> refusal(const MatmulArgs& args) { return openblas_refusal(gemm_call(args, false, false)); }

const KernelRegistration openblas_kernel{{.id = "matmul/cpu/openblas",
                                          .batch_invariant = false,
                                          .summary = "cblas_sgemm",
                                          .run = &run_typed<MatmulArgs, &openblas>,
                                          .refuse = &refuse_typed<MatmulArgs, &refusal>}};
const KernelRegistration tiled_kernel{{.id = "matmul/cpu/highway_tiled",
                                       .summary = "register tiles of 12x32 (AVX-512) or 6x16 (AVX2)",
                                       .run = &run_typed<MatmulArgs, &tiled>}};
const KernelRegistration dispatch_kernel{{.id = "matmul/cpu/dispatch",
                                          .batch_invariant = false,
                                          .summary = "highway_tiled for small products, else OpenBLAS",
                                          .run = &run_typed<MatmulArgs, &dispatch>,
                                          .priority = 1}};

KernelRegistration widened_kernel(DType storage, std::string_view id) {
  return KernelRegistration({.id = id,
                             .arithmetic = widened_arithmetic(storage),
                             .storage = storage,
                             .summary = kWidened,
                             .run = &run_typed<MatmulArgs, &widened>,
                             .priority = 1});
}
const KernelRegistration widened_kernels[] = {widened_kernel(DType::f16, "matmul/cpu/highway_tiled_f16"),
                                              widened_kernel(DType::bf16, "matmul/cpu/highway_tiled_bf16")};

}  // namespace
}  // namespace assay::cpu
