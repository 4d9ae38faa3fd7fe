// The gradient of an embedding table: launches embedding_backward.comp twice. dtable shares no memory with ids or dy
// (the contract's clause). Error: k terms in order for k tokens of an id, and the flushed subnormals.
#include "kernels/vulkan/launch.hpp"
#include "ops/embedding_backward.hpp"
#include "shaders/embedding_backward_first_of_id.hpp"
#include "shaders/embedding_backward_first_of_id_bf16.hpp"
#include "shaders/embedding_backward_first_of_id_f16.hpp"

namespace assay::vulkan::of_embedding_backward {
namespace {

/// Push constants of embedding_backward.comp.
struct EmbeddingBackwardPush {
  std::uint32_t t, v, h, ids_first, dy_first, dy_ld, dtable_first, dtable_ld;
};

void run(const ops::EmbeddingBackwardArgs& args, Device& device) {
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
  const Shader& shader =
      variant(args.dy.dtype(), shaders::embedding_backward_first_of_id, shaders::embedding_backward_first_of_id_f16,
              shaders::embedding_backward_first_of_id_bf16);
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

std::optional<std::string> refuse(const ops::EmbeddingBackwardArgs& args) {
  const Index passes = (args.t + kMaxGroups - 1) / kMaxGroups;
  if (auto why = refuse_long(passes * args.t + args.v / kMaxGroups + 10)) return why;
  return refuse_large(args.ids, args.dy, args.dtable);
}

KernelRegistration add(DType storage, std::string_view id) {
  return KernelRegistration({.id = id,
                             .arithmetic = kShaderArithmetic,
                             .storage = storage,
                             .summary = "the first token of an id sums them all in order; no atomics",
                             .run = &run_typed<ops::EmbeddingBackwardArgs, &run>,
                             .refuse = &refuse_typed<ops::EmbeddingBackwardArgs, &refuse>});
}

const KernelRegistration registrations[] = {add(DType::f32, "embedding_backward/vulkan/first_of_id"),
                                            add(DType::f16, "embedding_backward/vulkan/first_of_id_f16"),
                                            add(DType::bf16, "embedding_backward/vulkan/first_of_id_bf16")};

}  // namespace
}  // namespace assay::vulkan::of_embedding_backward
