// The launcher of residual_add, shared with its mutants.
#pragma once

#include "kernels/vulkan/elementwise.hpp"
#include "ops/residual_add.hpp"

namespace assay::vulkan {

template <const Shader& shader>
void run_residual_add(const ops::ResidualAddArgs& args, Device& device) {
  VulkanDevice& target = vulkan_device(device);
  run_map<2>(shader, target, args.m, args.n, static_cast<float>(args.alpha), map_tensor(target, args.y),
             {map_tensor(target, args.x), map_tensor(target, args.r)});
}

inline std::optional<std::string> refuse_residual_add(const ops::ResidualAddArgs& args) {
  return refuse_large(args.x, args.r, args.y);
}

template <const Shader& shader>
Kernel residual_add_row(std::string_view id, std::string_view source, std::string_view summary) {
  return map_row<ops::ResidualAddArgs, &run_residual_add<shader>, &refuse_residual_add>("residual_add", id, source,
                                                                                        summary);
}

}  // namespace assay::vulkan
