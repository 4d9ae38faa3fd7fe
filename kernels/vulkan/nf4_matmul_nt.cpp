// Y = X · Wᵀ, W in NF4 codes: launches the variants of nf4_matmul_nt.comp and nf4_matmul_nt_gemv.comp. y shares no
// memory with the others, and rows of codes begin at multiples of 4 bytes (the contract's clauses). Error: at most
// k*u*sum|x||w| and the flushed subnormals. k = 0 writes zeros.
#include "ops/nf4_matmul_nt.hpp"

#include "kernels/vulkan/nf4_product.hpp"
#include "shaders/nf4_matmul_nt_gemv.hpp"
#include "shaders/nf4_matmul_nt_naive16.hpp"
#include "shaders/nf4_matmul_nt_tiled64.hpp"

namespace assay::vulkan::of_nf4_matmul_nt {
namespace {

using ops::Nf4MatmulNtArgs;

const KernelRegistration naive16{
    nf4_product_kernel<Nf4MatmulNtArgs, &run_nf4_product<Nf4MatmulNtArgs, shaders::nf4_matmul_nt_naive16, 16>>(
        "nf4_matmul_nt/vulkan/naive16", kNaive16)};
const KernelRegistration by_rows{preferred(varying_with_batch(
    nf4_product_kernel<Nf4MatmulNtArgs,
                       &run_nf4_by_rows<Nf4MatmulNtArgs, shaders::nf4_matmul_nt_gemv, shaders::nf4_matmul_nt_tiled64>,
                       64>("nf4_matmul_nt/vulkan/by_rows",
                           "up to 4 rows: 64 invocations a row of W; more: 64x64 tiles, decoded into shared memory")))};

}  // namespace
}  // namespace assay::vulkan::of_nf4_matmul_nt
