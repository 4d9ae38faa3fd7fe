// y = x · Wᵀ + bias: launches the variants of linear.comp.
#include "kernels/linear.hpp"

#include "kernels/vulkan/affine_product.hpp"
#include "shaders/linear_naive16.hpp"
#include "shaders/linear_naive16_bf16.hpp"
#include "shaders/linear_naive16_f16.hpp"
#include "shaders/linear_tiled64.hpp"
#include "shaders/linear_tiled64_bf16.hpp"
#include "shaders/linear_tiled64_f16.hpp"

namespace assay::vulkan::of_linear {
namespace {

using ops::LinearArgs;

std::optional<std::string> refuse(const LinearArgs& args) { return refuse_large(args.x, args.weight, args.y); }

template <ProductShaders shaders>
Kernel product(std::string_view id, std::string_view summary, DType storage = DType::f32) {
  return composed_kernel<LinearArgs, &linear_by<&multiply<shaders>>, &refuse, shaders.tile>(id, summary, storage);
}

const KernelRegistration naive16{
    product<ProductShaders{.b_transposed = &shaders::linear_naive16, .tile = 16}>("linear/vulkan/naive16", kNaive16)};
const KernelRegistration naive16_f16{product<ProductShaders{.b_transposed = &shaders::linear_naive16_f16, .tile = 16}>(
    "linear/vulkan/naive16_f16", kNaive16, DType::f16)};
const KernelRegistration naive16_bf16{
    product<ProductShaders{.b_transposed = &shaders::linear_naive16_bf16, .tile = 16}>("linear/vulkan/naive16_bf16",
                                                                                       kNaive16, DType::bf16)};
const KernelRegistration tiled64{preferred(
    product<ProductShaders{.b_transposed = &shaders::linear_tiled64, .tile = 64}>("linear/vulkan/tiled64", kTiled64))};
const KernelRegistration tiled64_f16{
    preferred(product<ProductShaders{.b_transposed = &shaders::linear_tiled64_f16, .tile = 64}>(
        "linear/vulkan/tiled64_f16", kTiled64, DType::f16))};
const KernelRegistration tiled64_bf16{
    preferred(product<ProductShaders{.b_transposed = &shaders::linear_tiled64_bf16, .tile = 64}>(
        "linear/vulkan/tiled64_bf16", kTiled64, DType::bf16))};

}  // namespace
}  // namespace assay::vulkan::of_linear
