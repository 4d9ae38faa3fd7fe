// Gradient of rope with Vulkan: the inverse rotation. Buffers are bound as 4-byte words: f32 storage only.
#include "kernels/vulkan/rotary.hpp"
#include "ops/rope_backward.hpp"
#include "shaders/rope_backward_pairs.hpp"

namespace assay::vulkan::of_rope_backward {
namespace {

void run(const ops::RopeBackwardArgs& args, Device& device) { run_rotary(shaders::rope_backward_pairs, rotary_of(args), device); }

std::optional<std::string> refuse(const ops::RopeBackwardArgs& args) { return refuse_rotary(rotary_of(args)); }

const KernelRegistration pairs{{.id = "rope_backward/vulkan/pairs",
                                .arithmetic = {.flushes_subnormals = true, .functions = FunctionLibrary::octant},
                                .summary = "one pair of a position per invocation, rotated in every head; f32 storage alone",
                                .run = &run_typed<ops::RopeBackwardArgs, &run>,
                                .refuse = &refuse_typed<ops::RopeBackwardArgs, &refuse>}};

}  // namespace
}  // namespace assay::vulkan::of_rope_backward
