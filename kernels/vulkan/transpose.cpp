// dst = srcᵀ: launches transpose.comp and transpose_naive.comp. src and dst share no memory (the contract's clause).
// Copies bits.
#include "ops/transpose.hpp"

#include "kernels/vulkan/launch.hpp"
#include "shaders/transpose_naive.hpp"
#include "shaders/transpose_tiled32.hpp"

namespace assay::vulkan::of_transpose {
namespace {

using ops::TransposeArgs;

/// Push constants of transpose.comp.
struct TransposePush {
  std::uint32_t m, n, src_first, src_ld, dst_first, dst_ld;
};

/// A workgroup moves `rows` x 32 elements at a time.
template <const Shader& shader, Index rows>
void run(const TransposeArgs& args, Device& device) {
  VulkanDevice& target = vulkan_device(device);
  const std::array bindings{bind(target, args.src), bind(target, args.dst)};
  const TransposePush push{static_cast<std::uint32_t>(args.m),
                           static_cast<std::uint32_t>(args.n),
                           bindings[0].first,
                           step(args.src, 0),
                           bindings[1].first,
                           step(args.dst, 0)};
  target.dispatch({.name = shader.name,
                   .module = shader.module,
                   .bindings = bindings,
                   .push = bytes_of(push),
                   .groups = {groups(args.n, 32), groups(args.m, rows), 1}});
}

std::optional<std::string> refuse(const TransposeArgs& args) { return refuse_large(args.src, args.dst); }

const KernelRegistration naive{{.id = "transpose/vulkan/naive",
                                .summary = "one element per invocation",
                                .run = &run_typed<TransposeArgs, &run<shaders::transpose_naive, 8>>,
                                .refuse = &refuse_typed<TransposeArgs, &refuse>,
                                .automatic_above = kNeverAutomatic}};
const KernelRegistration tiled32{{.id = "transpose/vulkan/tiled32",
                                  .summary = "32x32 tiles in padded shared memory",
                                  .run = &run_typed<TransposeArgs, &run<shaders::transpose_tiled32, 32>>,
                                  .refuse = &refuse_typed<TransposeArgs, &refuse>,
                                  .priority = 1,
                                  .automatic_above = kNeverAutomatic}};

}  // namespace
}  // namespace assay::vulkan::of_transpose
