// Adds the adapter to the weight: launches the variants of lora_merge.comp.
#include "kernels/lora.hpp"
#include "kernels/vulkan/affine_product.hpp"
#include "shaders/lora_merge_naive16.hpp"
#include "shaders/lora_merge_tiled64.hpp"

namespace assay::vulkan::of_lora_merge {
namespace {

using ops::LoraMergeArgs;

std::optional<std::string> refuse(const LoraMergeArgs& args) {
  return refuse_large(args.weight, args.a, args.b, args.merged);
}

template <ProductShaders shaders>
Kernel product(std::string_view id, std::string_view summary) {
  return composed_kernel<LoraMergeArgs, &lora_merge_by<&multiply<shaders>>, &refuse, shaders.tile>(id, summary);
}

const KernelRegistration naive16{
    product<ProductShaders{.plain = &shaders::lora_merge_naive16, .tile = 16}>("lora_merge/vulkan/naive16", kNaive16)};
const KernelRegistration tiled64{preferred(
    product<ProductShaders{.plain = &shaders::lora_merge_tiled64, .tile = 64}>("lora_merge/vulkan/tiled64", kTiled64))};

}  // namespace
}  // namespace assay::vulkan::of_lora_merge
