// The adapter added to the weight: launches the variants of lora_merge.comp.
#include "kernels/vulkan/lora.hpp"
#include "shaders/lora_merge_naive16.hpp"
#include "shaders/lora_merge_tiled64.hpp"

namespace assay::vulkan::of_lora_merge {
namespace {

constexpr ProductShaders kNaive{.plain = &shaders::lora_merge_naive16, .tile = 16};
constexpr ProductShaders kTiled{.plain = &shaders::lora_merge_tiled64, .tile = 64};

const KernelRegistration naive16{lora_merge_kernel<&multiply<kNaive>>("lora_merge/vulkan/naive16", kNaive16)};
const KernelRegistration tiled64{
    preferred(lora_merge_kernel<&multiply<kTiled>, LoraFault::none, kTiled.tile>("lora_merge/vulkan/tiled64", kTiled64))};

}  // namespace
}  // namespace assay::vulkan::of_lora_merge
