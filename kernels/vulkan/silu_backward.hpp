// The launcher of silu_backward, shared with its mutants.
#pragma once

#include "kernels/vulkan/elementwise.hpp"
#include "ops/silu_backward.hpp"

namespace assay::vulkan {

template <const Shader& shader>
void run_silu_backward(const ops::SiluBackwardArgs& args, Device& device) {
  VulkanDevice& target = vulkan_device(device);
  run_map<2>(shader, target, args.m, args.n, 0, map_tensor(target, args.dx),
             {map_tensor(target, args.x), map_tensor(target, args.dy)});
}

inline std::optional<std::string> refuse_silu_backward(const ops::SiluBackwardArgs& args) {
  return refuse_large(args.x, args.dy, args.dx);
}

template <const Shader& shader>
Kernel silu_backward_row(std::string_view id, std::string_view source, std::string_view summary) {
  return map_row<ops::SiluBackwardArgs, &run_silu_backward<shader>, &refuse_silu_backward>("silu_backward", id, source,
                                                                                           summary);
}

}  // namespace assay::vulkan
