// Clipping of gradients by their global norm: launches the shaders of global_grad_norm, then clip_grad_norm.comp.
#include "kernels/vulkan/global_grad_norm.hpp"
#include "ops/clip_grad_norm.hpp"
#include "shaders/clip_grad_norm.hpp"

namespace assay::vulkan::of_clip_grad_norm {
namespace {

/// Push constants of clip_grad_norm.comp.
struct ClipPush {
  std::uint32_t n, g_first, norm_first;
  float limit, eps;
};

void run(const ops::ClipGradNormArgs& args, Device& device) {
  VulkanDevice& target = vulkan_device(device);
  const StorageBinding g = bind(target, args.g), norm = bind(target, args.norm);
  dispatch_norm(target, args.n, g, norm);
  const ClipPush push{static_cast<std::uint32_t>(args.n), g.first, norm.first, static_cast<float>(args.max_norm),
                      static_cast<float>(args.eps)};
  const std::array bindings{g, norm};
  target.dispatch({.name = shaders::clip_grad_norm.name,
                   .module = shaders::clip_grad_norm.module,
                   .bindings = bindings,
                   .push = bytes_of(push),
                   .groups = {groups(args.n, 256), 1, 1}});
}

std::optional<std::string> refuse(const ops::ClipGradNormArgs& args) { return refuse_large(args.g); }

const KernelRegistration two_stages{
    {.id = "clip_grad_norm/vulkan/two_stages",
     .arithmetic = kShaderArithmetic,
     .summary = "partial sums of up to 1024 workgroups, added by one; one pass to scale",
     .run = &run_typed<ops::ClipGradNormArgs, &run>,
     .refuse = &refuse_typed<ops::ClipGradNormArgs, &refuse>}};

}  // namespace
}  // namespace assay::vulkan::of_clip_grad_norm
