// The launcher of embedding, shared with its mutants.
#pragma once

#include "kernels/vulkan/elementwise.hpp"
#include "ops/embedding.hpp"

namespace assay::vulkan {

/// Push constants of embedding.comp.
struct EmbeddingPush {
  std::uint32_t t, h, ids_first, table_first, table_ld, y_first, y_ld;
};

template <const Shader& shader>
void run_embedding(const ops::EmbeddingArgs& args, Device& device) {
  VulkanDevice& target = vulkan_device(device);
  const std::array bindings{bind(target, args.ids), bind(target, args.table), bind(target, args.y)};
  const EmbeddingPush push{static_cast<std::uint32_t>(args.t),
                           static_cast<std::uint32_t>(args.h),
                           bindings[0].first,
                           bindings[1].first,
                           step(args.table, 0),
                           bindings[2].first,
                           step(args.y, 0)};
  const bool aligned = vectors(args.table, bindings[1]) != 0 && vectors(args.y, bindings[2]) != 0;
  const std::array<std::uint32_t, 1> constants{aligned};
  target.dispatch({.name = shader.name,
                   .module = shader.module,
                   .specialization = constants,
                   .bindings = bindings,
                   .push = bytes_of(push),
                   .groups = {groups(args.h, aligned ? 128 : 32), groups(args.t, 8), 1}});
}

inline std::optional<std::string> refuse_embedding(const ops::EmbeddingArgs& args) {
  return refuse_large(args.ids, args.table, args.y);
}

template <const Shader& shader>
Kernel embedding_row(std::string_view id, std::string_view source, std::string_view summary) {
  return map_row<ops::EmbeddingArgs, &run_embedding<shader>, &refuse_embedding>("embedding", id, source, summary);
}

}  // namespace assay::vulkan
