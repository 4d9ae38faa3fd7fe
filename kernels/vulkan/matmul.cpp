// C = A · B: launches the variants of matmul.comp. c shares no memory with a or b (the contract's clause).
// Error: k terms in order, at most k*u*sum|a||b| and the flushed subnormals, and half a unit of a 16-bit c.
// k = 0 writes zeros.
#include "ops/matmul.hpp"

#include "kernels/vulkan/product.hpp"
#include "shaders/matmul_naive16.hpp"
#include "shaders/matmul_naive16_bf16.hpp"
#include "shaders/matmul_naive16_f16.hpp"
#include "shaders/matmul_tiled128.hpp"
#include "shaders/matmul_tiled64.hpp"
#include "shaders/matmul_tiled64_bf16.hpp"
#include "shaders/matmul_tiled64_f16.hpp"

namespace assay::vulkan::of_matmul {
namespace {

using ops::MatmulArgs;

const KernelRegistration naive16{
    product_kernel<MatmulArgs, shaders::matmul_naive16, 16>("matmul/vulkan/naive16", kNaive16)};
const KernelRegistration naive16_f16{
    product_kernel<MatmulArgs, shaders::matmul_naive16_f16, 16>("matmul/vulkan/naive16_f16", kNaive16, DType::f16)};
const KernelRegistration naive16_bf16{
    product_kernel<MatmulArgs, shaders::matmul_naive16_bf16, 16>("matmul/vulkan/naive16_bf16", kNaive16, DType::bf16)};
const KernelRegistration tiled64{
    preferred(product_kernel<MatmulArgs, shaders::matmul_tiled64, 64>("matmul/vulkan/tiled64", kTiled64))};
const KernelRegistration tiled64_f16{preferred(
    product_kernel<MatmulArgs, shaders::matmul_tiled64_f16, 64>("matmul/vulkan/tiled64_f16", kTiled64, DType::f16))};
const KernelRegistration tiled64_bf16{preferred(
    product_kernel<MatmulArgs, shaders::matmul_tiled64_bf16, 64>("matmul/vulkan/tiled64_bf16", kTiled64, DType::bf16))};
const KernelRegistration tiled128{
    product_kernel<MatmulArgs, shaders::matmul_tiled128, 128>("matmul/vulkan/tiled128", kTiled128)};

}  // namespace
}  // namespace assay::vulkan::of_matmul
