// Values of Q4_K super-blocks: launches q4_k_dequantize.comp. y shares no memory with blocks (the contract's clause).
// The contract fixes the bits.
#include "kernels/vulkan/q4_k.hpp"
#include "ops/q4_k_dequantize.hpp"
#include "shaders/q4_k_dequantize_words.hpp"

namespace assay::vulkan::of_q4_k_dequantize {
namespace {

/// Push constants of q4_k_dequantize.comp.
struct Q4kDequantizePush {
  std::uint32_t rows, k, blocks_first, blocks_ld, y_first, y_ld;
};

void run(const ops::Q4KDequantizeArgs& args, Device& device) {
  VulkanDevice& target = vulkan_device(device);
  const std::array bindings{bind(target, args.blocks), bind(target, args.y)};
  const Q4kDequantizePush push{static_cast<std::uint32_t>(args.rows),
                               static_cast<std::uint32_t>(args.k),
                               bindings[0].first,
                               word_step(args.blocks),
                               bindings[1].first,
                               step(args.y, 0)};
  const std::array vector{vectors(args.y, bindings[1])};
  target.dispatch({.name = shaders::q4_k_dequantize_words.name,
                   .module = shaders::q4_k_dequantize_words.module,
                   .specialization = vector,
                   .bindings = bindings,
                   .push = bytes_of(push),
                   .groups = {groups(q4_k::blocks_of(args.k), 2), groups(args.rows, 1), 1}});
}

std::optional<std::string> refuse(const ops::Q4KDequantizeArgs& args) {
  if (auto why = refuse_bytes(args.blocks)) return why;
  if (auto why = refuse_long((args.rows / kMaxGroups + 1) * (q4_k::blocks_of(args.k) / (2 * kMaxGroups) + 1) * 2))
    return why;
  return refuse_large(args.y);
}

const KernelRegistration words{{.id = "q4_k_dequantize/vulkan/words",
                                .arithmetic = kShaderArithmetic,
                                .summary = "an invocation per word of codes, eight values",
                                .run = &run_typed<ops::Q4KDequantizeArgs, &run>,
                                .refuse = &refuse_typed<ops::Q4KDequantizeArgs, &refuse>}};

}  // namespace
}  // namespace assay::vulkan::of_q4_k_dequantize
