// y = W·x for W in Q4_K super-blocks: launches q4_k_gemv.comp. y shares no memory with blocks or x (the contract's
// clause).
// Error: k terms in any order, at most k*u*sum|w||x| and the flushed subnormals. k = 0 writes zeros.
#include "kernels/vulkan/q4_k.hpp"
#include "kernels/vulkan/rows.hpp"
#include "ops/q4_k_gemv.hpp"
#include "shaders/q4_k_gemv_cooperative.hpp"

namespace assay::vulkan::of_q4_k_gemv {
namespace {

/// Push constants of q4_k_gemv.comp.
struct Q4kGemvPush {
  std::uint32_t rows, k, blocks_first, blocks_ld, x_first, y_first;
};

void run(const ops::Q4KGemvArgs& args, Device& device) {
  VulkanDevice& target = vulkan_device(device);
  const std::array bindings{bind(target, args.blocks), bind(target, args.x), bind(target, args.y)};
  const Q4kGemvPush push{u32(args.rows),         u32(args.k),       bindings[0].first,
                         word_step(args.blocks), bindings[1].first, bindings[2].first};
  const std::array vector{vectors(args.x, bindings[1])};
  target.dispatch({.name = shaders::q4_k_gemv_cooperative.name,
                   .module = shaders::q4_k_gemv_cooperative.module,
                   .specialization = vector,
                   .bindings = bindings,
                   .push = bytes_of(push),
                   .groups = {groups(args.rows, kRowsOfGroup), 1, 1}});
}

/// Counts two iterations for each 512 values: an invocation takes every 64th word of codes of a row.
std::optional<std::string> refuse(const ops::Q4KGemvArgs& args) {
  if (auto why = refuse_bytes(args.blocks)) return why;
  if (auto why = refuse_rows(args.rows, args.k, 2)) return why;
  return refuse_large(args.x, args.y);
}

const KernelRegistration cooperative{{.id = "q4_k_gemv/vulkan/cooperative",
                                      .arithmetic = kShaderArithmetic,
                                      .summary = "64 invocations per row, tree reduction in shared memory",
                                      .run = &run_typed<ops::Q4KGemvArgs, &run>,
                                      .refuse = &refuse_typed<ops::Q4KGemvArgs, &refuse>,
                                      .automatic_above = kProductVolume}};

}  // namespace
}  // namespace assay::vulkan::of_q4_k_gemv
