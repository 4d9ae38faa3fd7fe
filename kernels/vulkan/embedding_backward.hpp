// The launcher of embedding_backward, shared with its mutants.
#pragma once

#include "kernels/vulkan/elementwise.hpp"
#include "ops/embedding_backward.hpp"

namespace assay::vulkan {

/// Push constants of embedding_backward.comp.
struct EmbeddingBackwardPush {
  std::uint32_t t, v, h, ids_first, dy_first, dy_ld, dtable_first, dtable_ld;
};

template <const Shader& shader>
void run_embedding_backward(const ops::EmbeddingBackwardArgs& args, Device& device) {
  VulkanDevice& target = vulkan_device(device);
  const std::array bindings{bind(target, args.ids), bind(target, args.dy), bind(target, args.dtable)};
  const EmbeddingBackwardPush push{static_cast<std::uint32_t>(args.t),
                                   static_cast<std::uint32_t>(args.v),
                                   static_cast<std::uint32_t>(args.h),
                                   bindings[0].first,
                                   bindings[1].first,
                                   step(args.dy, 0),
                                   bindings[2].first,
                                   step(args.dtable, 0)};
  for (const bool zeros : {true, false}) {
    const std::array<std::uint32_t, 1> constants{zeros};
    target.dispatch({.name = shader.name,
                     .module = shader.module,
                     .specialization = constants,
                     .bindings = bindings,
                     .push = bytes_of(push),
                     .groups = {groups(args.h, 64), groups(zeros ? args.v : args.t, 1), 1}});
  }
}

inline std::optional<std::string> refuse_embedding_backward(const ops::EmbeddingBackwardArgs& args) {
  const Index passes = (args.t + kMaxGroups - 1) / kMaxGroups;
  if (auto why = refuse_long(passes * args.t + args.v / kMaxGroups + 10)) return why;
  return refuse_large(args.ids, args.dy, args.dtable);
}

template <const Shader& shader>
Kernel embedding_backward_row(std::string_view id, std::string_view source, std::string_view summary) {
  return map_row<ops::EmbeddingBackwardArgs, &run_embedding_backward<shader>, &refuse_embedding_backward>(
      "embedding_backward", id, source, summary);
}

}  // namespace assay::vulkan
