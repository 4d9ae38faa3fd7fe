// The launcher of accumulate, shared with its mutants.
#pragma once

#include "kernels/vulkan/elementwise.hpp"
#include "ops/accumulate.hpp"

namespace assay::vulkan {

template <const Shader& shader>
void run_accumulate(const ops::AccumulateArgs& args, Device& device) {
  VulkanDevice& target = vulkan_device(device);
  run_map<2>(shader, target, args.m, args.n, static_cast<float>(args.alpha), map_tensor(target, args.dst),
             {map_tensor(target, args.dst), map_tensor(target, args.src)});
}

inline std::optional<std::string> refuse_accumulate(const ops::AccumulateArgs& args) {
  return refuse_large(args.dst, args.src);
}

template <const Shader& shader>
Kernel accumulate_row(std::string_view id, std::string_view source, std::string_view summary) {
  return map_row<ops::AccumulateArgs, &run_accumulate<shader>, &refuse_accumulate>("accumulate", id, source, summary);
}

}  // namespace assay::vulkan
