// The launcher of cross_entropy_backward, shared with its mutants.
#pragma once

#include "kernels/vulkan/launch.hpp"
#include "ops/cross_entropy_backward.hpp"

namespace assay::vulkan {

/// Push constants of cross_entropy_backward.comp.
struct CrossEntropyBackwardPush {
  std::uint32_t rows, classes, x_first, x_ld, dx_first, dx_ld, targets_first, weights_first, logsumexp_first,
      normalizer_first, dloss_first, dtotal_first;
};

template <const Shader& shader>
void run_cross_entropy_backward(const ops::CrossEntropyBackwardArgs& args, Device& device) {
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
  target.dispatch({.name = shader.name,
                   .module = shader.module,
                   .specialization = vector,
                   .bindings = bindings,
                   .push = bytes_of(push),
                   .groups = {groups(args.classes, 1024), groups(args.rows, 1), 1}});
}

inline std::optional<std::string> refuse_cross_entropy_backward(const ops::CrossEntropyBackwardArgs& args) {
  return refuse_large(args.logits, args.dlogits);
}

template <const Shader& shader>
Kernel cross_entropy_backward_kernel(std::string_view id) {
  return {.op = "cross_entropy_backward",
          .id = id,
          .backend = Backend::vulkan,
          .arithmetic = kShaderArithmetic,
          .source = "kernels/vulkan/cross_entropy_backward.comp",
          .summary = "four elements an invocation, one pass",
          .run = &run_typed<ops::CrossEntropyBackwardArgs, &run_cross_entropy_backward<shader>>,
          .refuse = &refuse_typed<ops::CrossEntropyBackwardArgs, &refuse_cross_entropy_backward>};
}

}  // namespace assay::vulkan
