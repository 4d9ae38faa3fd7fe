// The launcher of mean_pool, shared with its mutants.
#pragma once

#include "kernels/vulkan/elementwise.hpp"
#include "ops/mean_pool.hpp"

namespace assay::vulkan {

/// Push constants of mean_pool.comp.
struct MeanPoolPush {
  std::uint32_t b, s, h, x_first, x_batch, x_ld, lengths_first, y_first, y_ld;
};

template <const Shader& shader>
void run_mean_pool(const ops::MeanPoolArgs& args, Device& device) {
  VulkanDevice& target = vulkan_device(device);
  const std::array bindings{bind(target, args.x), bind(target, args.lengths), bind(target, args.y)};
  const MeanPoolPush push{static_cast<std::uint32_t>(args.b),
                          static_cast<std::uint32_t>(args.s),
                          static_cast<std::uint32_t>(args.h),
                          bindings[0].first,
                          step(args.x, 0),
                          step(args.x, 1),
                          bindings[1].first,
                          bindings[2].first,
                          step(args.y, 0)};
  target.dispatch({.name = shader.name,
                   .module = shader.module,
                   .bindings = bindings,
                   .push = bytes_of(push),
                   .groups = {groups(args.h, 32), groups(args.b, 1), 1}});
}

inline std::optional<std::string> refuse_mean_pool(const ops::MeanPoolArgs& args) {
  const Index passes = (args.b + kMaxGroups - 1) / kMaxGroups;
  if (auto why = refuse_long(passes * (args.s / 8 + 10))) return why;
  return refuse_large(args.x, args.lengths, args.y);
}

template <const Shader& shader>
Kernel mean_pool_row(std::string_view id, std::string_view source, std::string_view summary) {
  return map_row<ops::MeanPoolArgs, &run_mean_pool<shader>, &refuse_mean_pool>("mean_pool", id, source, summary);
}

}  // namespace assay::vulkan
