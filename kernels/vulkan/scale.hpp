// The launcher of scale, shared with its mutants.
#pragma once

#include "kernels/vulkan/elementwise.hpp"
#include "ops/scale.hpp"

namespace assay::vulkan {

template <const Shader& shader>
void run_scale(const ops::ScaleArgs& args, Device& device) {
  VulkanDevice& target = vulkan_device(device);
  run_map<1>(shader, target, args.m, args.n, static_cast<float>(args.alpha), map_tensor(target, args.y),
             {map_tensor(target, args.x)});
}

inline std::optional<std::string> refuse_scale(const ops::ScaleArgs& args) { return refuse_large(args.x, args.y); }

template <const Shader& shader>
Kernel scale_row(std::string_view id, std::string_view source, std::string_view summary) {
  return map_row<ops::ScaleArgs, &run_scale<shader>, &refuse_scale>("scale", id, source, summary);
}

}  // namespace assay::vulkan
