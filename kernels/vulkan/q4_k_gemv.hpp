// The launcher of q4_k_gemv, shared with its mutants.
#pragma once

#include "kernels/vulkan/elementwise.hpp"
#include "kernels/vulkan/q4_k.hpp"
#include "kernels/vulkan/rows.hpp"
#include "ops/q4_k_gemv.hpp"

namespace assay::vulkan {

/// Push constants of q4_k_gemv.comp.
struct Q4kGemvPush {
  std::uint32_t rows, k, blocks_first, blocks_ld, x_first, y_first;
};

template <const Shader& shader>
void run_q4k_gemv(const ops::Q4KGemvArgs& args, Device& device) {
  VulkanDevice& target = vulkan_device(device);
  const std::array bindings{bind(target, args.blocks), bind(target, args.x), bind(target, args.y)};
  const Q4kGemvPush push{u32(args.rows),         u32(args.k),       bindings[0].first,
                         word_step(args.blocks), bindings[1].first, bindings[2].first};
  const std::array vector{vectors(args.x, bindings[1])};
  target.dispatch({.name = shader.name,
                   .module = shader.module,
                   .specialization = vector,
                   .bindings = bindings,
                   .push = bytes_of(push),
                   .groups = {groups(args.rows, kRowsOfGroup), 1, 1}});
}

/// An invocation takes every 64th word of codes of a row: two turns for each 512 values.
inline std::optional<std::string> refuse_q4k_gemv(const ops::Q4KGemvArgs& args) {
  if (auto why = refuse_bytes(args.blocks)) return why;
  if (auto why = refuse_rows(args.rows, args.k, 2)) return why;
  return refuse_large(args.x, args.y);
}

template <const Shader& shader>
Kernel q4k_gemv_row(std::string_view id, std::string_view source, std::string_view summary) {
  Kernel row = map_row<ops::Q4KGemvArgs, &run_q4k_gemv<shader>, &refuse_q4k_gemv>("q4_k_gemv", id, source, summary);
  row.automatic_above = kProductVolume;
  return row;
}

}  // namespace assay::vulkan
