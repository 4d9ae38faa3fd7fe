// The launcher of mean_pool_backward, shared with its mutants.
#pragma once

#include "kernels/vulkan/elementwise.hpp"
#include "ops/mean_pool_backward.hpp"

namespace assay::vulkan {

/// Push constants of mean_pool_backward.comp.
struct MeanPoolBackwardPush {
  std::uint32_t b, s, h, lengths_first, dy_first, dy_ld, dx_first, dx_batch, dx_ld;
};

template <const Shader& shader>
void run_mean_pool_backward(const ops::MeanPoolBackwardArgs& args, Device& device) {
  VulkanDevice& target = vulkan_device(device);
  const std::array bindings{bind(target, args.lengths), bind(target, args.dy), bind(target, args.dx)};
  const MeanPoolBackwardPush push{static_cast<std::uint32_t>(args.b),
                                  static_cast<std::uint32_t>(args.s),
                                  static_cast<std::uint32_t>(args.h),
                                  bindings[0].first,
                                  bindings[1].first,
                                  step(args.dy, 0),
                                  bindings[2].first,
                                  step(args.dx, 0),
                                  step(args.dx, 1)};
  const bool vectors = push.dx_first % 4 == 0 && push.dx_batch % 4 == 0 && push.dx_ld % 4 == 0;
  const std::array<std::uint32_t, 1> constants{vectors};
  // Invocations of eight rows each: one division for eight stores.
  target.dispatch({.name = shader.name,
                   .module = shader.module,
                   .specialization = constants,
                   .bindings = bindings,
                   .push = bytes_of(push),
                   .groups = {groups(args.h, vectors ? 128 : 32), groups(args.s, 64), groups(args.b, 1)}});
}

inline std::optional<std::string> refuse_mean_pool_backward(const ops::MeanPoolBackwardArgs& args) {
  const Index passes = (args.b + kMaxGroups - 1) / kMaxGroups;
  if (auto why = refuse_long(passes * 16)) return why;
  return refuse_large(args.lengths, args.dy, args.dx);
}

template <const Shader& shader>
Kernel mean_pool_backward_row(std::string_view id, std::string_view source, std::string_view summary) {
  return map_row<ops::MeanPoolBackwardArgs, &run_mean_pool_backward<shader>, &refuse_mean_pool_backward>(
      "mean_pool_backward", id, source, summary);
}

}  // namespace assay::vulkan
