// Rotary position embedding with Vulkan. Buffers are bound as 4-byte words: f32 storage only.
#include "kernels/vulkan/rotary.hpp"
#include "ops/rope.hpp"
#include "shaders/rope_pairs.hpp"

namespace assay::vulkan::of_rope {
namespace {

void run(const ops::RopeArgs& args, Device& device) { run_rotary(shaders::rope_pairs, rotary_of(args), device); }

std::optional<std::string> refuse(const ops::RopeArgs& args) { return refuse_rotary(rotary_of(args)); }

const KernelRegistration pairs{{.id = "rope/vulkan/pairs",
                                .arithmetic = {.flushes_subnormals = true, .functions = FunctionLibrary::octant},
                                .summary = "one pair of a position per invocation, rotated in every head; f32 storage alone",
                                .run = &run_typed<ops::RopeArgs, &run>,
                                .refuse = &refuse_typed<ops::RopeArgs, &refuse>}};

}  // namespace
}  // namespace assay::vulkan::of_rope
