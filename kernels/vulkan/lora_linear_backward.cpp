// Gradients of a linear layer with a low-rank adapter: launches the variants of lora_linear_backward.comp.
#include "kernels/vulkan/lora.hpp"
#include "shaders/lora_linear_backward_naive16.hpp"
#include "shaders/lora_linear_backward_naive16_tn.hpp"
#include "shaders/lora_linear_backward_tiled64.hpp"
#include "shaders/lora_linear_backward_tiled64_tn.hpp"

namespace assay::vulkan::of_lora_linear_backward {
namespace {

constexpr ProductShaders kNaive{.plain = &shaders::lora_linear_backward_naive16,
                                .a_transposed = &shaders::lora_linear_backward_naive16_tn,
                                .tile = 16};
constexpr ProductShaders kTiled{.plain = &shaders::lora_linear_backward_tiled64,
                                .a_transposed = &shaders::lora_linear_backward_tiled64_tn,
                                .tile = 64};

const KernelRegistration naive16{
    lora_linear_backward_kernel<&multiply<kNaive>>("lora_linear_backward/vulkan/naive16", kNaive16)};
const KernelRegistration tiled64{
    preferred(lora_linear_backward_kernel<&multiply<kTiled>, LoraFault::none, kTiled.tile>("lora_linear_backward/vulkan/tiled64", kTiled64))};

}  // namespace
}  // namespace assay::vulkan::of_lora_linear_backward
