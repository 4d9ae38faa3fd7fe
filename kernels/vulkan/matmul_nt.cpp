// C = A · Bᵀ: launches the variants of matmul_nt.comp. c shares no memory with a or b (the contract's clause).
// Error: k terms in order, at most k*u*sum|a||b| and the flushed subnormals, and half a unit of a 16-bit c.
// k = 0 writes zeros.
#include "ops/matmul_nt.hpp"

#include "kernels/vulkan/product.hpp"
#include "shaders/matmul_nt_naive16.hpp"
#include "shaders/matmul_nt_naive16_bf16.hpp"
#include "shaders/matmul_nt_naive16_f16.hpp"
#include "shaders/matmul_nt_tiled128.hpp"
#include "shaders/matmul_nt_tiled64.hpp"
#include "shaders/matmul_nt_tiled64_bf16.hpp"
#include "shaders/matmul_nt_tiled64_f16.hpp"

namespace assay::vulkan::of_matmul_nt {
namespace {

using ops::MatmulNtArgs;

const KernelRegistration naive16{
    product_kernel<MatmulNtArgs, shaders::matmul_nt_naive16, 16>("matmul_nt/vulkan/naive16", kNaive16)};
const KernelRegistration naive16_f16{product_kernel<MatmulNtArgs, shaders::matmul_nt_naive16_f16, 16>(
    "matmul_nt/vulkan/naive16_f16", kNaive16, DType::f16)};
const KernelRegistration naive16_bf16{product_kernel<MatmulNtArgs, shaders::matmul_nt_naive16_bf16, 16>(
    "matmul_nt/vulkan/naive16_bf16", kNaive16, DType::bf16)};
const KernelRegistration tiled64{
    preferred(product_kernel<MatmulNtArgs, shaders::matmul_nt_tiled64, 64>("matmul_nt/vulkan/tiled64", kTiled64))};
const KernelRegistration tiled64_f16{preferred(product_kernel<MatmulNtArgs, shaders::matmul_nt_tiled64_f16, 64>(
    "matmul_nt/vulkan/tiled64_f16", kTiled64, DType::f16))};
const KernelRegistration tiled64_bf16{preferred(product_kernel<MatmulNtArgs, shaders::matmul_nt_tiled64_bf16, 64>(
    "matmul_nt/vulkan/tiled64_bf16", kTiled64, DType::bf16))};
const KernelRegistration tiled128{
    product_kernel<MatmulNtArgs, shaders::matmul_nt_tiled128, 128>("matmul_nt/vulkan/tiled128", kTiled128)};

}  // namespace
}  // namespace assay::vulkan::of_matmul_nt
