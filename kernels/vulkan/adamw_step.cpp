// One step of AdamW: launches adamw_step.comp or adamw_step_vectors.comp, and adamw_step_copy.comp for a copy in f32:
// p, m and v have the same bits with a copy and without. No two tensors share memory (the contract's clause). All
// arithmetic is float32; a 16-bit copy is rounded once, from the p that is stored.
#include "kernels/adamw_constants.hpp"
#include "kernels/vulkan/launch.hpp"
#include "shaders/adamw_step.hpp"
#include "shaders/adamw_step_bf16.hpp"
#include "shaders/adamw_step_copy.hpp"
#include "shaders/adamw_step_f16.hpp"
#include "shaders/adamw_step_vectors_bf16.hpp"
#include "shaders/adamw_step_vectors_f16.hpp"

namespace assay::vulkan::of_adamw_step {
namespace {

/// Push constants of adamw_step.comp.
struct AdamwPush {
  std::uint32_t n, p_first, m_first, v_first, g_first;
  AdamwConstants constants;
};

void run(const ops::AdamwStepArgs& args, Device& device) {
  VulkanDevice& target = vulkan_device(device);
  const std::array bindings{bind(target, args.p), bind(target, args.m), bind(target, args.v), bind(target, args.g)};
  const AdamwPush push{static_cast<std::uint32_t>(args.n),
                       bindings[0].first,
                       bindings[1].first,
                       bindings[2].first,
                       bindings[3].first,
                       adamw_constants(args)};
  target.dispatch({.name = shaders::adamw_step.name,
                   .module = shaders::adamw_step.module,
                   .bindings = bindings,
                   .push = bytes_of(push),
                   .groups = {groups(args.n, 256), 1, 1}});
  if (args.copies == 0) return;
  const std::array copied{bindings[0], bind(target, args.rounded)};
  const std::array<std::uint32_t, 3> copy_push{push.n, copied[0].first, copied[1].first};
  target.dispatch({.name = shaders::adamw_step_copy.name,
                   .module = shaders::adamw_step_copy.module,
                   .bindings = copied,
                   .push = bytes_of(copy_push),
                   .groups = {groups(args.n, 256), 1, 1}});
}

/// Push constants of adamw_step.comp with F16 or BF16, and of adamw_step_vectors.comp.
struct AdamwStoredPush {
  AdamwPush step;
  std::uint32_t copies, rounded_first;
};

/// An invocation takes `each` elements.
template <const Shader& shader, Index each>
void run_stored(const ops::AdamwStepArgs& args, Device& device) {
  VulkanDevice& target = vulkan_device(device);
  const std::array bindings{bind(target, args.p), bind(target, args.m), bind(target, args.v), bind(target, args.g),
                            bind(target, args.rounded)};
  const AdamwStoredPush push{{static_cast<std::uint32_t>(args.n), bindings[0].first, bindings[1].first,
                              bindings[2].first, bindings[3].first, adamw_constants(args)},
                             static_cast<std::uint32_t>(args.copies),
                             bindings[4].first};
  const bool aligned = std::ranges::all_of(bindings, [](const StorageBinding& b) { return b.first % 4 == 0; });
  const std::array<std::uint32_t, 1> vector{aligned ? 1U : 0U};
  target.dispatch({.name = shader.name,
                   .module = shader.module,
                   .specialization = vector,
                   .bindings = bindings,
                   .push = bytes_of(push),
                   .groups = {groups(args.n, 256 * each), 1, 1}});
}

std::optional<std::string> refuse(const ops::AdamwStepArgs& args) {
  return refuse_large(args.p, args.m, args.v, args.g, args.rounded);
}

constexpr std::string_view kElementwise = "one parameter an invocation, one pass";
constexpr std::string_view kVectors = "four parameters an invocation, one pass, vector loads where aligned";

template <void (*run)(const ops::AdamwStepArgs&, Device&)>
Kernel step(std::string_view id, std::string_view summary, DType storage = DType::f32) {
  return {.id = id,
          .arithmetic = kShaderArithmetic,
          .storage = storage,
          .summary = summary,
          .run = &run_typed<ops::AdamwStepArgs, run>,
          .refuse = &refuse_typed<ops::AdamwStepArgs, &refuse>};
}

const KernelRegistration elementwise{step<&run>("adamw_step/vulkan/elementwise", kElementwise)};
const KernelRegistration elementwise_f16{
    step<&run_stored<shaders::adamw_step_f16, 1>>("adamw_step/vulkan/elementwise_f16", kElementwise, DType::f16)};
const KernelRegistration elementwise_bf16{
    step<&run_stored<shaders::adamw_step_bf16, 1>>("adamw_step/vulkan/elementwise_bf16", kElementwise, DType::bf16)};
const KernelRegistration vectors_f16{preferred(
    step<&run_stored<shaders::adamw_step_vectors_f16, 4>>("adamw_step/vulkan/vectors_f16", kVectors, DType::f16))};
const KernelRegistration vectors_bf16{preferred(
    step<&run_stored<shaders::adamw_step_vectors_bf16, 4>>("adamw_step/vulkan/vectors_bf16", kVectors, DType::bf16))};

}  // namespace
}  // namespace assay::vulkan::of_adamw_step
