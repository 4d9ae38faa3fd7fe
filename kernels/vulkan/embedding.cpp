// Rows of a table by index: launches embedding.comp. y shares no memory with ids or table (the contract's clause).
// Copies bits.
#include "kernels/vulkan/launch.hpp"
#include "ops/embedding.hpp"
#include "shaders/embedding_vectors.hpp"
#include "shaders/embedding_vectors_16.hpp"

namespace assay::vulkan::of_embedding {
namespace {

/// Push constants of embedding.comp.
struct EmbeddingPush {
  std::uint32_t t, h, ids_first, table_first, table_ld, y_first, y_ld;
};

void run(const ops::EmbeddingArgs& args, Device& device) {
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
  const Shader& shader = args.y.dtype() == DType::f32 ? shaders::embedding_vectors : shaders::embedding_vectors_16;
  target.dispatch({.name = shader.name,
                   .module = shader.module,
                   .specialization = constants,
                   .bindings = bindings,
                   .push = bytes_of(push),
                   .groups = {groups(args.h, aligned ? 128 : 32), groups(args.t, 8), 1}});
}

std::optional<std::string> refuse(const ops::EmbeddingArgs& args) { return refuse_large(args.ids, args.table, args.y); }

KernelRegistration add(DType storage, std::string_view id) {
  return KernelRegistration({.id = id,
                             .arithmetic = kShaderArithmetic,
                             .storage = storage,
                             .summary = "four columns per invocation where rows are aligned",
                             .run = &run_typed<ops::EmbeddingArgs, &run>,
                             .refuse = &refuse_typed<ops::EmbeddingArgs, &refuse>});
}

const KernelRegistration registrations[] = {add(DType::f32, "embedding/vulkan/vectors"),
                                            add(DType::f16, "embedding/vulkan/vectors_f16"),
                                            add(DType::bf16, "embedding/vulkan/vectors_bf16")};

}  // namespace
}  // namespace assay::vulkan::of_embedding
