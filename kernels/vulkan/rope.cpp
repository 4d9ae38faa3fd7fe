// Rotary position embedding and its gradient, the rotation back, with Vulkan.
#include "kernels/rope.hpp"
#include "kernels/vulkan/rows.hpp"
#include "ops/rope.hpp"
#include "ops/rope_backward.hpp"
#include "shaders/rope_backward_pairs.hpp"
#include "shaders/rope_backward_pairs_bf16.hpp"
#include "shaders/rope_backward_pairs_f16.hpp"
#include "shaders/rope_pairs.hpp"
#include "shaders/rope_pairs_bf16.hpp"
#include "shaders/rope_pairs_f16.hpp"

namespace assay::vulkan::of_rope {
namespace {

/// Push constants of rope.comp.
struct RopePush {
  std::uint32_t rows, heads, half_d, x_first, x_row, x_head, y_first, y_row, y_head, interleaved, float32_angle,
      positions_first;
};

/// The frequencies of a call go along with it in a buffer of their own.
void run_rope(const Shader& shader, const RopeCall& call, Device& device) {
  VulkanDevice& target = vulkan_device(device);
  const StorageView& x = call.from;
  const StorageView& y = call.to;
  if (x.size() == 0) return;
  const std::vector<RopeFrequency>& table = rope_frequencies(call.theta, call.d, call.float32_angle);
  const Buffer frequencies = target.allocate(table.size() * sizeof(RopeFrequency));
  target.upload(frequencies.address(), table.data(), frequencies.bytes());
  const std::array bindings{bind(target, x), bind(target, y), target.bind(frequencies.address(), frequencies.bytes()),
                            bind(target, call.positions)};
  const RopePush push{u32(call.rows), u32(call.heads),  u32(call.d / 2),    bindings[0].first,
                      step(x, 0),     step(x, 1),       bindings[1].first,  step(y, 0),
                      step(y, 1),     call.interleaved, call.float32_angle, bindings[3].first};
  target.dispatch({.name = shader.name,
                   .module = shader.module,
                   .bindings = bindings,
                   .push = bytes_of(push),
                   .groups = {groups(call.rows * call.d / 2, 64), 1, 1}});
}

std::optional<std::string> refuse_rope(const RopeCall& call) {
  if (auto why = refuse_long((call.rows * call.d / 2 / (64 * kMaxGroups) + 1) * (call.heads + 1))) return why;
  return refuse_large(call.from, call.to);
}

template <class Args, const Shader& shader>
void run(const Args& args, Device& device) {
  run_rope(shader, rope_call(args), device);
}

template <class Args>
std::optional<std::string> refuse(const Args& args) {
  return refuse_rope(rope_call(args));
}

template <class Args, const Shader& shader>
Kernel pairs(DType storage, std::string_view id) {
  return {.id = id,
          .arithmetic = {.flushes_subnormals = true, .functions = FunctionLibrary::octant},
          .storage = storage,
          .summary = "one pair of a row per invocation, rotated in every head",
          .run = &run_typed<Args, &run<Args, shader>>,
          .refuse = &refuse_typed<Args, &refuse<Args>>};
}

const KernelRegistration forward{pairs<ops::RopeArgs, shaders::rope_pairs>(DType::f32, "rope/vulkan/pairs")};
const KernelRegistration forward_f16{
    pairs<ops::RopeArgs, shaders::rope_pairs_f16>(DType::f16, "rope/vulkan/pairs_f16")};
const KernelRegistration forward_bf16{
    pairs<ops::RopeArgs, shaders::rope_pairs_bf16>(DType::bf16, "rope/vulkan/pairs_bf16")};
const KernelRegistration backward{
    pairs<ops::RopeBackwardArgs, shaders::rope_backward_pairs>(DType::f32, "rope_backward/vulkan/pairs")};
const KernelRegistration backward_f16{
    pairs<ops::RopeBackwardArgs, shaders::rope_backward_pairs_f16>(DType::f16, "rope_backward/vulkan/pairs_f16")};
const KernelRegistration backward_bf16{
    pairs<ops::RopeBackwardArgs, shaders::rope_backward_pairs_bf16>(DType::bf16, "rope_backward/vulkan/pairs_bf16")};

}  // namespace
}  // namespace assay::vulkan::of_rope
