// C = Aᵀ · B: launches the variants of matmul_tn.comp. c shares no memory with a or b (the contract's clause).
// Error: k terms in order, at most k*u*sum|a||b| and the flushed subnormals. k = 0 writes zeros.
#include "ops/matmul_tn.hpp"

#include "kernels/vulkan/product.hpp"
#include "shaders/matmul_tn_naive16.hpp"
#include "shaders/matmul_tn_naive16_bf16.hpp"
#include "shaders/matmul_tn_naive16_f16.hpp"
#include "shaders/matmul_tn_tiled128.hpp"
#include "shaders/matmul_tn_tiled64.hpp"
#include "shaders/matmul_tn_tiled64_bf16.hpp"
#include "shaders/matmul_tn_tiled64_f16.hpp"

namespace assay::vulkan::of_matmul_tn {
namespace {

using ops::MatmulTnArgs;

const KernelRegistration naive16{
    product_kernel<MatmulTnArgs, shaders::matmul_tn_naive16, 16>("matmul_tn/vulkan/naive16", kNaive16)};
const KernelRegistration naive16_f16{product_kernel<MatmulTnArgs, shaders::matmul_tn_naive16_f16, 16>(
    "matmul_tn/vulkan/naive16_f16", kNaive16, DType::f16)};
const KernelRegistration naive16_bf16{product_kernel<MatmulTnArgs, shaders::matmul_tn_naive16_bf16, 16>(
    "matmul_tn/vulkan/naive16_bf16", kNaive16, DType::bf16)};
const KernelRegistration tiled64{
    preferred(product_kernel<MatmulTnArgs, shaders::matmul_tn_tiled64, 64>("matmul_tn/vulkan/tiled64", kTiled64))};
const KernelRegistration tiled64_f16{preferred(product_kernel<MatmulTnArgs, shaders::matmul_tn_tiled64_f16, 64>(
    "matmul_tn/vulkan/tiled64_f16", kTiled64, DType::f16))};
const KernelRegistration tiled64_bf16{preferred(product_kernel<MatmulTnArgs, shaders::matmul_tn_tiled64_bf16, 64>(
    "matmul_tn/vulkan/tiled64_bf16", kTiled64, DType::bf16))};
const KernelRegistration tiled128{
    product_kernel<MatmulTnArgs, shaders::matmul_tn_tiled128, 128>("matmul_tn/vulkan/tiled128", kTiled128)};

}  // namespace
}  // namespace assay::vulkan::of_matmul_tn
