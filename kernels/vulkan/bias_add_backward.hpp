// The launcher of bias_add_backward, shared with its mutants.
#pragma once

#include "kernels/vulkan/elementwise.hpp"
#include "ops/bias_add_backward.hpp"

namespace assay::vulkan {

/// Push constants of bias_add_backward.comp.
struct BiasAddBackwardPush {
  std::uint32_t m, n, dy_first, dy_ld, dx_first, dx_ld, dbias_first;
};

template <const Shader& shader>
void run_bias_add_backward(const ops::BiasAddBackwardArgs& args, Device& device) {
  VulkanDevice& target = vulkan_device(device);
  const std::array bindings{bind(target, args.dy), bind(target, args.dx), bind(target, args.dbias)};
  const BiasAddBackwardPush push{static_cast<std::uint32_t>(args.m),
                                 static_cast<std::uint32_t>(args.n),
                                 bindings[0].first,
                                 step(args.dy, 0),
                                 bindings[1].first,
                                 step(args.dx, 0),
                                 bindings[2].first};
  target.dispatch({.name = shader.name,
                   .module = shader.module,
                   .bindings = bindings,
                   .push = bytes_of(push),
                   .groups = {groups(args.n, 32), 1, 1}});
}

inline std::optional<std::string> refuse_bias_add_backward(const ops::BiasAddBackwardArgs& args) {
  if (auto why = refuse_long(args.m / 8 + 10)) return why;
  return refuse_large(args.dy, args.dx, args.dbias);
}

template <const Shader& shader>
Kernel bias_add_backward_row(std::string_view id, std::string_view source, std::string_view summary) {
  return map_row<ops::BiasAddBackwardArgs, &run_bias_add_backward<shader>, &refuse_bias_add_backward>(
      "bias_add_backward", id, source, summary);
}

}  // namespace assay::vulkan
