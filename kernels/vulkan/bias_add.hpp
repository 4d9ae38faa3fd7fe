// The launcher of bias_add, shared with its mutants.
#pragma once

#include "kernels/vulkan/elementwise.hpp"
#include "ops/bias_add.hpp"

namespace assay::vulkan {

template <const Shader& shader>
void run_bias_add(const ops::BiasAddArgs& args, Device& device) {
  VulkanDevice& target = vulkan_device(device);
  run_map<2>(shader, target, args.m, args.n, 0, map_tensor(target, args.y),
             {map_tensor(target, args.x), MapTensor{bind(target, args.bias), 0}});
}

inline std::optional<std::string> refuse_bias_add(const ops::BiasAddArgs& args) {
  return refuse_large(args.x, args.bias, args.y);
}

template <const Shader& shader>
Kernel bias_add_row(std::string_view id, std::string_view source, std::string_view summary) {
  return map_row<ops::BiasAddArgs, &run_bias_add<shader>, &refuse_bias_add>("bias_add", id, source, summary);
}

}  // namespace assay::vulkan
