// A linear layer with a low-rank adapter: launches the variants of lora_linear.comp.
#include "kernels/vulkan/lora.hpp"
#include "shaders/lora_linear_naive16.hpp"
#include "shaders/lora_linear_tiled64.hpp"

namespace assay::vulkan::of_lora_linear {
namespace {

constexpr ProductShaders kNaive{.b_transposed = &shaders::lora_linear_naive16, .tile = 16};
constexpr ProductShaders kTiled{.b_transposed = &shaders::lora_linear_tiled64, .tile = 64};

const KernelRegistration naive16{lora_linear_kernel<&multiply<kNaive>>("lora_linear/vulkan/naive16", kNaive16)};
const KernelRegistration tiled64{
    preferred(lora_linear_kernel<&multiply<kTiled>, LoraFault::none, kTiled.tile>("lora_linear/vulkan/tiled64", kTiled64))};

}  // namespace
}  // namespace assay::vulkan::of_lora_linear
