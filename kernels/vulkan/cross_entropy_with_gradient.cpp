// Weighted cross-entropy and the gradient of its total: launches cross_entropy_total.comp for the normalizer, then
// cross_entropy_with_gradient.comp, then cross_entropy_total.comp. Outputs share no memory with inputs (the contract's
// clauses). Error: the contract's bound, with the precision that Vulkan asks of exp, log and division.
#include "kernels/vulkan/launch.hpp"
#include "ops/cross_entropy_with_gradient.hpp"
#include "shaders/cross_entropy_normalizer.hpp"
#include "shaders/cross_entropy_total.hpp"
#include "shaders/cross_entropy_with_gradient_row.hpp"
#include "shaders/cross_entropy_with_gradient_row_bf16.hpp"
#include "shaders/cross_entropy_with_gradient_row_f16.hpp"

namespace assay::vulkan::of_cross_entropy_with_gradient {
namespace {

using ops::CrossEntropyWithGradientArgs;

/// Push constants of cross_entropy.glsl with GRADIENT, and of cross_entropy_total.comp.
struct CrossEntropyWithGradientPush {
  std::uint32_t rows, classes, x_first, x_ld, targets_first, weights_first, loss_first, logsumexp_first,
      normalizer_first, gradient_first, gradient_ld;
};
struct CrossEntropyTotalPush {
  std::uint32_t rows, mean, loss_first, targets_first, weights_first, total_first, normalizer_first;
};

/// The device frees the scratch of one float, the normalizer, after use.
void run(const CrossEntropyWithGradientArgs& args, Device& device) {
  VulkanDevice& target = vulkan_device(device);
  const Buffer scratch = target.allocate(sizeof(float));
  const StorageBinding x = bind(target, args.logits), targets = bind(target, args.targets),
                       weights = bind(target, args.weights), loss = bind(target, args.loss),
                       total = bind(target, args.total), logsumexp = bind(target, args.logsumexp),
                       gradient = bind(target, args.gradient),
                       normalizer = target.bind(scratch.address(), scratch.bytes());
  const auto rows = static_cast<std::uint32_t>(args.rows);
  const CrossEntropyTotalPush total_push{
      rows, args.reduction == 1 ? 1U : 0U, loss.first, targets.first, weights.first, total.first, normalizer.first};
  const std::array total_bindings{loss, targets, weights, total, normalizer};
  target.dispatch({.name = shaders::cross_entropy_normalizer.name,
                   .module = shaders::cross_entropy_normalizer.module,
                   .bindings = total_bindings,
                   .push = bytes_of(total_push)});
  const CrossEntropyWithGradientPush push{rows,
                                          static_cast<std::uint32_t>(args.classes),
                                          x.first,
                                          step(args.logits, 0),
                                          targets.first,
                                          weights.first,
                                          loss.first,
                                          logsumexp.first,
                                          normalizer.first,
                                          gradient.first,
                                          step(args.gradient, 0)};
  const std::array vector{vectors(args.logits, x), vectors(args.gradient, gradient)};
  const std::array row_bindings{x, targets, weights, loss, logsumexp, normalizer, gradient};
  const Shader& shader =
      variant(args.logits.dtype(), shaders::cross_entropy_with_gradient_row,
              shaders::cross_entropy_with_gradient_row_f16, shaders::cross_entropy_with_gradient_row_bf16);
  target.dispatch({.name = shader.name,
                   .module = shader.module,
                   .specialization = vector,
                   .bindings = row_bindings,
                   .push = bytes_of(push),
                   .groups = {groups(args.rows, 1), 1, 1}});
  target.dispatch({.name = shaders::cross_entropy_total.name,
                   .module = shaders::cross_entropy_total.module,
                   .bindings = total_bindings,
                   .push = bytes_of(total_push)});
}

/// Counts three passes over each row of a workgroup, twenty iterations for their reductions, and the rows twice more.
std::optional<std::string> refuse(const CrossEntropyWithGradientArgs& args) {
  const Index passes = (args.rows + kMaxGroups - 1) / kMaxGroups;
  if (auto why = refuse_long(passes * (3 * ((args.classes + 1023) / 1024) + 20) + args.rows / 128)) return why;
  return refuse_large(args.logits, args.targets, args.weights, args.loss, args.gradient);
}

KernelRegistration add(DType storage, std::string_view id) {
  return KernelRegistration(
      {.id = id,
       .arithmetic = kShaderArithmetic,
       .storage = storage,
       .summary = "a workgroup per row, maximum first, gradient last; one workgroup for the total",
       .run = &run_typed<CrossEntropyWithGradientArgs, &run>,
       .refuse = &refuse_typed<CrossEntropyWithGradientArgs, &refuse>});
}

const KernelRegistration registrations[] = {
    add(DType::f32, "cross_entropy_with_gradient/vulkan/workgroup_per_row"),
    add(DType::f16, "cross_entropy_with_gradient/vulkan/workgroup_per_row_f16"),
    add(DType::bf16, "cross_entropy_with_gradient/vulkan/workgroup_per_row_bf16")};

}  // namespace
}  // namespace assay::vulkan::of_cross_entropy_with_gradient
