// Rotary position embedding with Vulkan. Buffers are bound as 4-byte words: f32 storage alone.
#include "ops/rope.hpp"

#include "kernels/vulkan/rotary.hpp"
#include "shaders/rope_pairs.hpp"

namespace assay::vulkan::of_rope {
namespace {

const KernelRegistration pairs{rotary_row<ops::RopeArgs, shaders::rope_pairs>("rope", "rope/vulkan/pairs")};

}  // namespace
}  // namespace assay::vulkan::of_rope
