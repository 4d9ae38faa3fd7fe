// Attention: launches attention.comp and attention_naive.comp.
#include "kernels/vulkan/attention.hpp"

#include "shaders/attention_naive.hpp"

namespace assay::vulkan::of_attention {
namespace {

const KernelRegistration naive{attention_naive<shaders::attention_naive>("attention/vulkan/naive")};
const KernelRegistration tiled{preferred(attention_tiled<>("attention/vulkan/tiled"))};

}  // namespace
}  // namespace assay::vulkan::of_attention
