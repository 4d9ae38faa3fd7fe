// The launcher of q4_k_quantize, shared with its mutants.
#pragma once

#include "kernels/vulkan/elementwise.hpp"
#include "kernels/vulkan/q4_k.hpp"
#include "ops/q4_k_quantize.hpp"

namespace assay::vulkan {

/// Push constants of q4_k_quantize.comp.
struct Q4kQuantizePush {
  std::uint32_t rows, k, x_first, x_ld, blocks_first, blocks_ld;
};

template <const Shader& shader>
void run_q4k_quantize(const ops::Q4KQuantizeArgs& args, Device& device) {
  VulkanDevice& target = vulkan_device(device);
  const std::array bindings{bind(target, args.x), bind(target, args.blocks)};
  const Q4kQuantizePush push{static_cast<std::uint32_t>(args.rows), static_cast<std::uint32_t>(args.k),
                             bindings[0].first, step(args.x, 0), bindings[1].first, word_step(args.blocks)};
  target.dispatch({.name = shader.name,
                   .module = shader.module,
                   .bindings = bindings,
                   .push = bytes_of(push),
                   .groups = {groups(q4_k::blocks_of(args.k), 2), groups(args.rows, 1), 1}});
}

/// A super-block takes some 90 turns of its inner loops.
inline std::optional<std::string> refuse_q4k_quantize(const ops::Q4KQuantizeArgs& args) {
  if (auto why = refuse_bytes(args.blocks)) return why;
  if (auto why = refuse_long((args.rows / kMaxGroups + 1) * (q4_k::blocks_of(args.k) / (2 * kMaxGroups) + 1) * 90)) return why;
  return refuse_large(args.x);
}

template <const Shader& shader>
Kernel q4k_quantize_row(std::string_view id, std::string_view source, std::string_view summary) {
  return map_row<ops::Q4KQuantizeArgs, &run_q4k_quantize<shader>, &refuse_q4k_quantize>("q4_k_quantize", id, source, summary);
}

}  // namespace assay::vulkan
