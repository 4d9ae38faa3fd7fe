// A linear layer with a low-rank adapter: launches the variants of lora_linear.comp.
#include "kernels/lora.hpp"
#include "kernels/vulkan/affine_product.hpp"
#include "shaders/lora_linear_naive16.hpp"
#include "shaders/lora_linear_tiled64.hpp"

namespace assay::vulkan::of_lora_linear {
namespace {

using ops::LoraLinearArgs;

std::optional<std::string> refuse(const LoraLinearArgs& args) {
  return refuse_large(args.x, args.weight, args.a, args.b, args.y, args.t);
}

template <ProductShaders shaders>
Kernel product(std::string_view id, std::string_view summary) {
  return composed_kernel<LoraLinearArgs, &lora_linear_by<&multiply<shaders>>, &refuse, shaders.tile>(id, summary);
}

const KernelRegistration naive16{product<ProductShaders{.b_transposed = &shaders::lora_linear_naive16, .tile = 16}>(
    "lora_linear/vulkan/naive16", kNaive16)};
const KernelRegistration tiled64{
    preferred(product<ProductShaders{.b_transposed = &shaders::lora_linear_tiled64, .tile = 64}>(
        "lora_linear/vulkan/tiled64", kTiled64))};

}  // namespace
}  // namespace assay::vulkan::of_lora_linear
