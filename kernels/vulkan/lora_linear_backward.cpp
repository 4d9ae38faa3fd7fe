// Gradients of a linear layer with a low-rank adapter: launches the variants of lora_linear_backward.comp.
#include "kernels/lora.hpp"
#include "kernels/vulkan/affine_product.hpp"
#include "shaders/lora_linear_backward_naive16.hpp"
#include "shaders/lora_linear_backward_naive16_tn.hpp"
#include "shaders/lora_linear_backward_tiled64.hpp"
#include "shaders/lora_linear_backward_tiled64_tn.hpp"

namespace assay::vulkan::of_lora_linear_backward {
namespace {

using ops::LoraLinearBackwardArgs;

std::optional<std::string> refuse(const LoraLinearBackwardArgs& args) {
  return refuse_large(args.x, args.weight, args.a, args.b, args.t, args.dy, args.dx, args.da, args.db);
}

template <ProductShaders shaders>
Kernel product(std::string_view id, std::string_view summary) {
  return composed_kernel<LoraLinearBackwardArgs, &lora_linear_backward_by<&multiply<shaders>>, &refuse, shaders.tile>(
      id, summary);
}

const KernelRegistration naive16{product<ProductShaders{.plain = &shaders::lora_linear_backward_naive16,
                                                        .a_transposed = &shaders::lora_linear_backward_naive16_tn,
                                                        .tile = 16}>("lora_linear_backward/vulkan/naive16", kNaive16)};
const KernelRegistration tiled64{
    preferred(product<ProductShaders{.plain = &shaders::lora_linear_backward_tiled64,
                                     .a_transposed = &shaders::lora_linear_backward_tiled64_tn,
                                     .tile = 64}>("lora_linear_backward/vulkan/tiled64", kTiled64))};

}  // namespace
}  // namespace assay::vulkan::of_lora_linear_backward
