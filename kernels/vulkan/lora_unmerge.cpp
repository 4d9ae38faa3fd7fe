// Subtracts the adapter from the weight: launches the variants of lora_unmerge.comp.
#include "kernels/lora.hpp"
#include "kernels/vulkan/affine_product.hpp"
#include "shaders/lora_unmerge_naive16.hpp"
#include "shaders/lora_unmerge_tiled64.hpp"

namespace assay::vulkan::of_lora_unmerge {
namespace {

using ops::LoraUnmergeArgs;

std::optional<std::string> refuse(const LoraUnmergeArgs& args) {
  return refuse_large(args.merged, args.a, args.b, args.weight);
}

template <ProductShaders shaders>
Kernel product(std::string_view id, std::string_view summary) {
  return composed_kernel<LoraUnmergeArgs, &lora_unmerge_by<&multiply<shaders>>, &refuse, shaders.tile>(id, summary);
}

const KernelRegistration naive16{product<ProductShaders{.plain = &shaders::lora_unmerge_naive16, .tile = 16}>(
    "lora_unmerge/vulkan/naive16", kNaive16)};
const KernelRegistration tiled64{preferred(product<ProductShaders{.plain = &shaders::lora_unmerge_tiled64, .tile = 64}>(
    "lora_unmerge/vulkan/tiled64", kTiled64))};

}  // namespace
}  // namespace assay::vulkan::of_lora_unmerge
