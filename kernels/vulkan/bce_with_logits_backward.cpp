// Gradient of the binary cross-entropy: launches bce_with_logits_backward.comp. dlogits shares no memory with an input.
#include "kernels/vulkan/launch.hpp"
#include "ops/bce_with_logits_backward.hpp"
#include "shaders/bce_with_logits_backward.hpp"

namespace assay::vulkan::of_bce_with_logits_backward {
namespace {

/// Push constants of bce_with_logits_backward.comp.
struct BceBackwardPush {
  std::uint32_t rows, classes, x_first, x_ld, targets_first, targets_ld, weight_first, dloss_first, dx_first, dx_ld;
};

void run(const ops::BceWithLogitsBackwardArgs& args, Device& device) {
  if (args.rows == 0) return;
  VulkanDevice& target = vulkan_device(device);
  const std::array bindings{bind(target, args.logits), bind(target, args.targets), bind(target, args.pos_weight),
                            bind(target, args.dloss), bind(target, args.dlogits)};
  const BceBackwardPush push{static_cast<std::uint32_t>(args.rows),
                             static_cast<std::uint32_t>(args.classes),
                             bindings[0].first,
                             step(args.logits, 0),
                             bindings[1].first,
                             step(args.targets, 0),
                             bindings[2].first,
                             bindings[3].first,
                             bindings[4].first,
                             step(args.dlogits, 0)};
  target.dispatch({.name = shaders::bce_with_logits_backward.name,
                   .module = shaders::bce_with_logits_backward.module,
                   .bindings = bindings,
                   .push = bytes_of(push),
                   .groups = {groups(args.classes, 256), groups(args.rows, 1), 1}});
}

std::optional<std::string> refuse(const ops::BceWithLogitsBackwardArgs& args) {
  return refuse_large(args.logits, args.targets, args.dlogits);
}

const KernelRegistration elementwise{{.id = "bce_with_logits_backward/vulkan/elementwise",
                                      .arithmetic = kShaderArithmetic,
                                      .summary = "one element an invocation, one pass",
                                      .run = &run_typed<ops::BceWithLogitsBackwardArgs, &run>,
                                      .refuse = &refuse_typed<ops::BceWithLogitsBackwardArgs, &refuse>}};

}  // namespace
}  // namespace assay::vulkan::of_bce_with_logits_backward
