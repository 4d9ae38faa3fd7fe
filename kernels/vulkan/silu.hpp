// The launcher of silu, shared with its mutants.
#pragma once

#include "kernels/vulkan/elementwise.hpp"
#include "ops/silu.hpp"

namespace assay::vulkan {

template <const Shader& shader>
void run_silu(const ops::SiluArgs& args, Device& device) {
  VulkanDevice& target = vulkan_device(device);
  run_map<1>(shader, target, args.m, args.n, 0, map_tensor(target, args.y), {map_tensor(target, args.x)});
}

inline std::optional<std::string> refuse_silu(const ops::SiluArgs& args) {
  return refuse_large(args.x, args.y);
}

template <const Shader& shader>
Kernel silu_row(std::string_view id, std::string_view source, std::string_view summary) {
  return map_row<ops::SiluArgs, &run_silu<shader>, &refuse_silu>("silu", id, source, summary);
}

}  // namespace assay::vulkan
