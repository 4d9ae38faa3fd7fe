// The gradients of y = x + bias: launches bias_add_backward.comp. Nothing shares memory (the contract's clause).
// Error: m terms in a fixed order, at most m*u*sum|dy| and the flushed subnormals. m = 0 writes zeros.
#include "kernels/vulkan/launch.hpp"
#include "ops/bias_add_backward.hpp"
#include "shaders/bias_add_backward_stripes.hpp"
#include "shaders/bias_add_backward_stripes_bf16.hpp"
#include "shaders/bias_add_backward_stripes_f16.hpp"

namespace assay::vulkan::of_bias_add_backward {
namespace {

/// Push constants of bias_add_backward.comp.
struct BiasAddBackwardPush {
  std::uint32_t m, n, dy_first, dy_ld, dx_first, dx_ld, dbias_first;
};

void run(const ops::BiasAddBackwardArgs& args, Device& device) {
  VulkanDevice& target = vulkan_device(device);
  const std::array bindings{bind(target, args.dy), bind(target, args.dx), bind(target, args.dbias)};
  const BiasAddBackwardPush push{static_cast<std::uint32_t>(args.m),
                                 static_cast<std::uint32_t>(args.n),
                                 bindings[0].first,
                                 step(args.dy, 0),
                                 bindings[1].first,
                                 step(args.dx, 0),
                                 bindings[2].first};
  const Shader& shader = variant(args.dy.dtype(), shaders::bias_add_backward_stripes,
                                 shaders::bias_add_backward_stripes_f16, shaders::bias_add_backward_stripes_bf16);
  target.dispatch({.name = shader.name,
                   .module = shader.module,
                   .bindings = bindings,
                   .push = bytes_of(push),
                   .groups = {groups(args.n, 32), 1, 1}});
}

std::optional<std::string> refuse(const ops::BiasAddBackwardArgs& args) {
  if (auto why = refuse_long(args.m / 8 + 10)) return why;
  return refuse_large(args.dy, args.dx, args.dbias);
}

KernelRegistration add(DType storage, std::string_view id) {
  return KernelRegistration({.id = id,
                             .arithmetic = kShaderArithmetic,
                             .storage = storage,
                             .summary = "32 columns per workgroup, eight stripes of rows added in order",
                             .run = &run_typed<ops::BiasAddBackwardArgs, &run>,
                             .refuse = &refuse_typed<ops::BiasAddBackwardArgs, &refuse>});
}

const KernelRegistration registrations[] = {add(DType::f32, "bias_add_backward/vulkan/stripes"),
                                            add(DType::f16, "bias_add_backward/vulkan/stripes_f16"),
                                            add(DType::bf16, "bias_add_backward/vulkan/stripes_bf16")};

}  // namespace
}  // namespace assay::vulkan::of_bias_add_backward
