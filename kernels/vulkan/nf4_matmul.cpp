// DX = DY · W, W in NF4 codes: launches the variants of nf4_matmul.comp. dx shares no memory with the others, and rows
// of codes begin at multiples of 4 bytes (the contract's clauses). Error: at most n*u*sum|dy||w| and the flushed
// subnormals. n = 0 writes zeros.
#include "ops/nf4_matmul.hpp"

#include "kernels/vulkan/nf4_product.hpp"
#include "shaders/nf4_matmul_naive16.hpp"
#include "shaders/nf4_matmul_tiled64.hpp"

namespace assay::vulkan::of_nf4_matmul {
namespace {

using ops::Nf4MatmulArgs;

const KernelRegistration naive16{
    nf4_product_kernel<Nf4MatmulArgs, &run_nf4_product<Nf4MatmulArgs, shaders::nf4_matmul_naive16, 16>>(
        "nf4_matmul/vulkan/naive16", kNaive16)};
const KernelRegistration tiled64{
    preferred(nf4_product_kernel<Nf4MatmulArgs, &run_nf4_product<Nf4MatmulArgs, shaders::nf4_matmul_tiled64, 64>, 64>(
        "nf4_matmul/vulkan/tiled64", kTiled64))};

}  // namespace
}  // namespace assay::vulkan::of_nf4_matmul
