// The launcher of adamw_step, shared with its mutants.
#pragma once

#include "kernels/adamw_constants.hpp"
#include "kernels/vulkan/launch.hpp"

namespace assay::vulkan {

/// Push constants of adamw_step.comp.
struct AdamwPush {
  std::uint32_t n, p_first, m_first, v_first, g_first;
  AdamwConstants constants;
};

template <const Shader& shader>
void run_adamw(const ops::AdamwStepArgs& args, Device& device) {
  VulkanDevice& target = vulkan_device(device);
  const std::array bindings{bind(target, args.p), bind(target, args.m), bind(target, args.v), bind(target, args.g)};
  const AdamwPush push{static_cast<std::uint32_t>(args.n),
                       bindings[0].first,
                       bindings[1].first,
                       bindings[2].first,
                       bindings[3].first,
                       adamw_constants(args)};
  target.dispatch({.name = shader.name,
                   .module = shader.module,
                   .bindings = bindings,
                   .push = bytes_of(push),
                   .groups = {groups(args.n, 256), 1, 1}});
}

inline std::optional<std::string> refuse_adamw(const ops::AdamwStepArgs& args) {
  return refuse_large(args.p, args.m, args.v, args.g);
}

template <const Shader& shader>
Kernel adamw_kernel(std::string_view id) {
  return {.op = "adamw_step",
          .id = id,
          .backend = Backend::vulkan,
          .arithmetic = kShaderArithmetic,
          .source = "kernels/vulkan/adamw_step.comp",
          .summary = "one parameter an invocation, one pass",
          .run = &run_typed<ops::AdamwStepArgs, &run_adamw<shader>>,
          .refuse = &refuse_typed<ops::AdamwStepArgs, &refuse_adamw>};
}

}  // namespace assay::vulkan
