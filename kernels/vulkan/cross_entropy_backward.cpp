// Gradient of the weighted cross-entropy: launches cross_entropy_backward.comp. dlogits shares no memory with an input.
#include "kernels/vulkan/launch.hpp"
#include "ops/cross_entropy_backward.hpp"
#include "shaders/cross_entropy_backward.hpp"
#include "shaders/cross_entropy_backward_bf16.hpp"
#include "shaders/cross_entropy_backward_f16.hpp"

namespace assay::vulkan::of_cross_entropy_backward {
namespace {

/// Push constants of cross_entropy_backward.comp.
struct CrossEntropyBackwardPush {
  std::uint32_t rows, classes, x_first, x_ld, dx_first, dx_ld, targets_first, weights_first, logsumexp_first,
      normalizer_first, dloss_first, dtotal_first;
};

void run(const ops::CrossEntropyBackwardArgs& args, Device& device) {
  VulkanDevice& target = vulkan_device(device);
  const std::array bindings{bind(target, args.logits),    bind(target, args.targets),    bind(target, args.weights),
                            bind(target, args.logsumexp), bind(target, args.normalizer), bind(target, args.dloss),
                            bind(target, args.dtotal),    bind(target, args.dlogits)};
  const CrossEntropyBackwardPush push{static_cast<std::uint32_t>(args.rows),
                                      static_cast<std::uint32_t>(args.classes),
                                      bindings[0].first,
                                      step(args.logits, 0),
                                      bindings[7].first,
                                      step(args.dlogits, 0),
                                      bindings[1].first,
                                      bindings[2].first,
                                      bindings[3].first,
                                      bindings[4].first,
                                      bindings[5].first,
                                      bindings[6].first};
  const std::array vector{vectors(args.logits, bindings[0]), vectors(args.dlogits, bindings[7])};
  const Shader& shader = variant(args.logits.dtype(), shaders::cross_entropy_backward,
                                 shaders::cross_entropy_backward_f16, shaders::cross_entropy_backward_bf16);
  target.dispatch({.name = shader.name,
                   .module = shader.module,
                   .specialization = vector,
                   .bindings = bindings,
                   .push = bytes_of(push),
                   .groups = {groups(args.classes, 1024), groups(args.rows, 1), 1}});
}

std::optional<std::string> refuse(const ops::CrossEntropyBackwardArgs& args) {
  return refuse_large(args.logits, args.dlogits);
}

KernelRegistration add(DType storage, std::string_view id) {
  return KernelRegistration({.id = id,
                             .arithmetic = kShaderArithmetic,
                             .storage = storage,
                             .summary = "four elements an invocation, one pass",
                             .run = &run_typed<ops::CrossEntropyBackwardArgs, &run>,
                             .refuse = &refuse_typed<ops::CrossEntropyBackwardArgs, &refuse>});
}

const KernelRegistration registrations[] = {add(DType::f32, "cross_entropy_backward/vulkan/four_per_invocation"),
                                            add(DType::f16, "cross_entropy_backward/vulkan/four_per_invocation_f16"),
                                            add(DType::bf16, "cross_entropy_backward/vulkan/four_per_invocation_bf16")};

}  // namespace
}  // namespace assay::vulkan::of_cross_entropy_backward
