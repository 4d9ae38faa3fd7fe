// Rotary position embedding by given cosines and sines, and its gradient, with Vulkan: launches rope_table.comp.
#include "kernels/rope_table.hpp"
#include "kernels/vulkan/rows.hpp"
#include "ops/rope_table.hpp"
#include "ops/rope_table_backward.hpp"
#include "shaders/rope_table_backward_pairs.hpp"
#include "shaders/rope_table_backward_pairs_bf16.hpp"
#include "shaders/rope_table_backward_pairs_f16.hpp"
#include "shaders/rope_table_pairs.hpp"
#include "shaders/rope_table_pairs_bf16.hpp"
#include "shaders/rope_table_pairs_f16.hpp"

namespace assay::vulkan::of_rope_table {
namespace {

/// Push constants of rope_table.comp.
struct RopeTablePush {
  std::uint32_t rows, heads, half_d, x_first, x_row, x_head, y_first, y_row, y_head, cosines_first, cosines_ld,
      sines_first, sines_ld, positions_first, interleaved;
};

void run_rope_table(const Shader& shader, const RopeTableCall& call, Device& device) {
  VulkanDevice& target = vulkan_device(device);
  const StorageView& x = call.from;
  const StorageView& y = call.to;
  if (x.size() == 0) return;
  const std::array bindings{bind(target, x), bind(target, y), bind(target, call.cosines), bind(target, call.sines),
                            bind(target, call.positions)};
  const RopeTablePush push{u32(call.rows),      u32(call.heads),   u32(call.d / 2),       bindings[0].first,
                           step(x, 0),          step(x, 1),        bindings[1].first,     step(y, 0),
                           step(y, 1),          bindings[2].first, step(call.cosines, 0), bindings[3].first,
                           step(call.sines, 0), bindings[4].first, call.interleaved};
  target.dispatch({.name = shader.name,
                   .module = shader.module,
                   .bindings = bindings,
                   .push = bytes_of(push),
                   .groups = {groups(call.rows * call.d / 2, 64), 1, 1}});
}

std::optional<std::string> refuse_call(const RopeTableCall& call) {
  if (auto why = refuse_long((call.rows * call.d / 2 / (64 * kMaxGroups) + 1) * (call.heads + 1))) return why;
  return refuse_large(call.from, call.to, call.cosines, call.sines);
}

template <class Args, const Shader& shader>
void run(const Args& args, Device& device) {
  run_rope_table(shader, rope_table_call(args), device);
}

template <class Args>
std::optional<std::string> refuse(const Args& args) {
  return refuse_call(rope_table_call(args));
}

template <class Args, const Shader& shader>
Kernel pairs(DType storage, std::string_view id) {
  return {.id = id,
          .arithmetic = kShaderArithmetic,
          .storage = storage,
          .summary = "one pair of a row per invocation, rotated in every head",
          .run = &run_typed<Args, &run<Args, shader>>,
          .refuse = &refuse_typed<Args, &refuse<Args>>};
}

using Forward = ops::RopeTableArgs;
using Backward = ops::RopeTableBackwardArgs;
const KernelRegistration registrations[] = {
    KernelRegistration(pairs<Forward, shaders::rope_table_pairs>(DType::f32, "rope_table/vulkan/pairs")),
    KernelRegistration(pairs<Forward, shaders::rope_table_pairs_f16>(DType::f16, "rope_table/vulkan/pairs_f16")),
    KernelRegistration(pairs<Forward, shaders::rope_table_pairs_bf16>(DType::bf16, "rope_table/vulkan/pairs_bf16")),
    KernelRegistration(
        pairs<Backward, shaders::rope_table_backward_pairs>(DType::f32, "rope_table_backward/vulkan/pairs")),
    KernelRegistration(
        pairs<Backward, shaders::rope_table_backward_pairs_f16>(DType::f16, "rope_table_backward/vulkan/pairs_f16")),
    KernelRegistration(
        pairs<Backward, shaders::rope_table_backward_pairs_bf16>(DType::bf16, "rope_table_backward/vulkan/pairs_bf16")),
};

}  // namespace
}  // namespace assay::vulkan::of_rope_table
