// One step of AdamW: launches adamw_step.comp. No two tensors share memory (the contract's clause).
#include "kernels/adamw_constants.hpp"
#include "kernels/vulkan/launch.hpp"
#include "shaders/adamw_step.hpp"

namespace assay::vulkan::of_adamw_step {
namespace {

/// Push constants of adamw_step.comp.
struct AdamwPush {
  std::uint32_t n, p_first, m_first, v_first, g_first;
  AdamwConstants constants;
};

void run(const ops::AdamwStepArgs& args, Device& device) {
  VulkanDevice& target = vulkan_device(device);
  const std::array bindings{bind(target, args.p), bind(target, args.m), bind(target, args.v), bind(target, args.g)};
  const AdamwPush push{static_cast<std::uint32_t>(args.n),
                       bindings[0].first,
                       bindings[1].first,
                       bindings[2].first,
                       bindings[3].first,
                       adamw_constants(args)};
  target.dispatch({.name = shaders::adamw_step.name,
                   .module = shaders::adamw_step.module,
                   .bindings = bindings,
                   .push = bytes_of(push),
                   .groups = {groups(args.n, 256), 1, 1}});
}

std::optional<std::string> refuse(const ops::AdamwStepArgs& args) {
  return refuse_large(args.p, args.m, args.v, args.g);
}

const KernelRegistration elementwise{{.id = "adamw_step/vulkan/elementwise",
                                      .arithmetic = kShaderArithmetic,
                                      .summary = "one parameter an invocation, one pass",
                                      .run = &run_typed<ops::AdamwStepArgs, &run>,
                                      .refuse = &refuse_typed<ops::AdamwStepArgs, &refuse>}};

}  // namespace
}  // namespace assay::vulkan::of_adamw_step
