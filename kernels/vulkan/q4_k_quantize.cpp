// Q4_K super-blocks of values: launches q4_k_quantize.comp. blocks shares no memory with x (the contract's clause). The
// contract fixes the bits: no result depends on the rounding of a quotient.
#include "kernels/vulkan/q4_k.hpp"
#include "ops/q4_k_quantize.hpp"
#include "shaders/q4_k_quantize_cooperative.hpp"

namespace assay::vulkan::of_q4_k_quantize {
namespace {

/// Push constants of q4_k_quantize.comp.
struct Q4kQuantizePush {
  std::uint32_t rows, k, x_first, x_ld, blocks_first, blocks_ld;
};

void run(const ops::Q4KQuantizeArgs& args, Device& device) {
  VulkanDevice& target = vulkan_device(device);
  const std::array bindings{bind(target, args.x), bind(target, args.blocks)};
  const Q4kQuantizePush push{static_cast<std::uint32_t>(args.rows),
                             static_cast<std::uint32_t>(args.k),
                             bindings[0].first,
                             step(args.x, 0),
                             bindings[1].first,
                             word_step(args.blocks)};
  target.dispatch({.name = shaders::q4_k_quantize_cooperative.name,
                   .module = shaders::q4_k_quantize_cooperative.module,
                   .bindings = bindings,
                   .push = bytes_of(push),
                   .groups = {groups(q4_k::blocks_of(args.k), 2), groups(args.rows, 1), 1}});
}

/// Counts about 90 iterations of the inner loops per super-block.
std::optional<std::string> refuse(const ops::Q4KQuantizeArgs& args) {
  if (auto why = refuse_bytes(args.blocks)) return why;
  if (auto why = refuse_long((args.rows / kMaxGroups + 1) * (q4_k::blocks_of(args.k) / (2 * kMaxGroups) + 1) * 90))
    return why;
  return refuse_large(args.x);
}

const KernelRegistration cooperative{{.id = "q4_k_quantize/vulkan/cooperative",
                                      .arithmetic = kShaderArithmetic,
                                      .summary = "32 invocations per super-block, eight values each",
                                      .run = &run_typed<ops::Q4KQuantizeArgs, &run>,
                                      .refuse = &refuse_typed<ops::Q4KQuantizeArgs, &refuse>}};

}  // namespace
}  // namespace assay::vulkan::of_q4_k_quantize
