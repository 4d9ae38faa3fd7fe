// Gradient of rope with Vulkan: the rotation back. Buffers are bound as 4-byte words: f32 storage alone.
#include "ops/rope_backward.hpp"

#include "kernels/vulkan/rotary.hpp"
#include "shaders/rope_backward_pairs.hpp"

namespace assay::vulkan::of_rope_backward {
namespace {

const KernelRegistration pairs{rotary_row<ops::RopeBackwardArgs, shaders::rope_backward_pairs>("rope_backward", "rope_backward/vulkan/pairs")};

}  // namespace
}  // namespace assay::vulkan::of_rope_backward
