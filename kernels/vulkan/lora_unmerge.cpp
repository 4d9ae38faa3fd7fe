// The adapter taken out of the weight: launches the variants of lora_unmerge.comp.
#include "kernels/vulkan/lora.hpp"
#include "shaders/lora_unmerge_naive16.hpp"
#include "shaders/lora_unmerge_tiled64.hpp"

namespace assay::vulkan::of_lora_unmerge {
namespace {

constexpr ProductShaders kNaive{.plain = &shaders::lora_unmerge_naive16, .tile = 16};
constexpr ProductShaders kTiled{.plain = &shaders::lora_unmerge_tiled64, .tile = 64};

const KernelRegistration naive16{lora_unmerge_kernel<&multiply<kNaive>>("lora_unmerge/vulkan/naive16", kNaive16)};
const KernelRegistration tiled64{
    preferred(lora_unmerge_kernel<&multiply<kTiled>, LoraFault::none, kTiled.tile>("lora_unmerge/vulkan/tiled64", kTiled64))};

}  // namespace
}  // namespace assay::vulkan::of_lora_unmerge
