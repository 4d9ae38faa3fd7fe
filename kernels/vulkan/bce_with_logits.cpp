// Binary cross-entropy: launches bce_with_logits.comp. loss shares no memory with an input.
#include "kernels/vulkan/launch.hpp"
#include "ops/bce_with_logits.hpp"
#include "shaders/bce_with_logits.hpp"

namespace assay::vulkan::of_bce_with_logits {
namespace {

/// Push constants of bce_with_logits.comp.
struct BcePush {
  std::uint32_t rows, classes, x_first, x_ld, targets_first, targets_ld, weight_first, loss_first;
};

void run(const ops::BceWithLogitsArgs& args, Device& device) {
  VulkanDevice& target = vulkan_device(device);
  const std::array bindings{bind(target, args.logits), bind(target, args.targets), bind(target, args.pos_weight),
                            bind(target, args.loss)};
  const BcePush push{static_cast<std::uint32_t>(args.rows),
                     static_cast<std::uint32_t>(args.classes),
                     bindings[0].first,
                     step(args.logits, 0),
                     bindings[1].first,
                     step(args.targets, 0),
                     bindings[2].first,
                     bindings[3].first};
  target.dispatch({.name = shaders::bce_with_logits.name,
                   .module = shaders::bce_with_logits.module,
                   .bindings = bindings,
                   .push = bytes_of(push),
                   .groups = {groups(args.rows, 1), 1, 1}});
}

/// Counts one iteration per 256 labels and ten for the reduction, for every row of a workgroup.
std::optional<std::string> refuse(const ops::BceWithLogitsArgs& args) {
  const Index passes = (args.rows + kMaxGroups - 1) / kMaxGroups;
  if (auto why = refuse_long(passes * ((args.classes + 255) / 256 + 10))) return why;
  return refuse_large(args.logits, args.targets);
}

const KernelRegistration workgroup_per_row{
    {.id = "bce_with_logits/vulkan/workgroup_per_row",
     .arithmetic = kShaderArithmetic,
     .summary = "a workgroup per row, tree reduction in shared memory; log1p by a series of its own",
     .run = &run_typed<ops::BceWithLogitsArgs, &run>,
     .refuse = &refuse_typed<ops::BceWithLogitsArgs, &refuse>}};

}  // namespace
}  // namespace assay::vulkan::of_bce_with_logits
