// The launcher of q4_k_dequantize, shared with its mutants.
#pragma once

#include "kernels/vulkan/elementwise.hpp"
#include "kernels/vulkan/q4_k.hpp"
#include "ops/q4_k_dequantize.hpp"

namespace assay::vulkan {

/// Push constants of q4_k_dequantize.comp.
struct Q4kDequantizePush {
  std::uint32_t rows, k, blocks_first, blocks_ld, y_first, y_ld;
};

template <const Shader& shader>
void run_q4k_dequantize(const ops::Q4KDequantizeArgs& args, Device& device) {
  VulkanDevice& target = vulkan_device(device);
  const std::array bindings{bind(target, args.blocks), bind(target, args.y)};
  const Q4kDequantizePush push{static_cast<std::uint32_t>(args.rows), static_cast<std::uint32_t>(args.k),
                               bindings[0].first, word_step(args.blocks), bindings[1].first, step(args.y, 0)};
  const std::array vector{vectors(args.y, bindings[1])};
  target.dispatch({.name = shader.name,
                   .module = shader.module,
                   .specialization = vector,
                   .bindings = bindings,
                   .push = bytes_of(push),
                   .groups = {groups(q4_k::blocks_of(args.k), 2), groups(args.rows, 1), 1}});
}

inline std::optional<std::string> refuse_q4k_dequantize(const ops::Q4KDequantizeArgs& args) {
  if (auto why = refuse_bytes(args.blocks)) return why;
  if (auto why = refuse_long((args.rows / kMaxGroups + 1) * (q4_k::blocks_of(args.k) / (2 * kMaxGroups) + 1) * 2)) return why;
  return refuse_large(args.y);
}

template <const Shader& shader>
Kernel q4k_dequantize_row(std::string_view id, std::string_view source, std::string_view summary) {
  return map_row<ops::Q4KDequantizeArgs, &run_q4k_dequantize<shader>, &refuse_q4k_dequantize>("q4_k_dequantize", id, source,
                                                                                             summary);
}

}  // namespace assay::vulkan
