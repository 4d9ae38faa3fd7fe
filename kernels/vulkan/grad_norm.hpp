// The launchers of global_grad_norm and clip_grad_norm, shared with their mutants.
#pragma once

#include "kernels/vulkan/launch.hpp"
#include "ops/clip_grad_norm.hpp"
#include "ops/global_grad_norm.hpp"

namespace assay::vulkan {

/// Push constants of global_grad_norm.comp, global_grad_norm_total.comp and clip_grad_norm.comp.
struct SquaresPush {
  std::uint32_t n, g_first, partial_first;
};
struct NormPush {
  std::uint32_t count, partial_first, norm_first;
};
struct ClipPush {
  std::uint32_t n, g_first, norm_first;
  float limit;
};

/// Workgroups whose partial sums one workgroup adds: enough to fill any device.
inline constexpr Index kNormGroups = 1024;

/// norm[0] = sqrt(sum_i g[i]^2). The scratch memory is given back once the device is done with it.
template <const Shader& squares, const Shader& total>
void dispatch_norm(VulkanDevice& target, Index n, const StorageBinding& g, const StorageBinding& norm) {
  const Index count = std::clamp<Index>((n + 255) / 256, 1, kNormGroups);
  const Buffer scratch = target.allocate(static_cast<std::size_t>(count) * sizeof(float));
  const StorageBinding partial = target.bind(scratch.address(), scratch.bytes());
  const SquaresPush squares_push{static_cast<std::uint32_t>(n), g.first, partial.first};
  const std::array squares_bindings{g, partial};
  target.dispatch({.name = squares.name,
                   .module = squares.module,
                   .bindings = squares_bindings,
                   .push = bytes_of(squares_push),
                   .groups = {static_cast<std::uint32_t>(count), 1, 1}});
  const NormPush norm_push{static_cast<std::uint32_t>(count), partial.first, norm.first};
  const std::array norm_bindings{partial, norm};
  target.dispatch({.name = total.name, .module = total.module, .bindings = norm_bindings, .push = bytes_of(norm_push)});
}

template <const Shader& squares, const Shader& total>
void run_norm(const ops::GlobalGradNormArgs& args, Device& device) {
  VulkanDevice& target = vulkan_device(device);
  dispatch_norm<squares, total>(target, args.n, bind(target, args.g), bind(target, args.norm));
}

template <const Shader& squares, const Shader& total, const Shader& clip>
void run_clip(const ops::ClipGradNormArgs& args, Device& device) {
  VulkanDevice& target = vulkan_device(device);
  const StorageBinding g = bind(target, args.g), norm = bind(target, args.norm);
  dispatch_norm<squares, total>(target, args.n, g, norm);
  const ClipPush push{static_cast<std::uint32_t>(args.n), g.first, norm.first, static_cast<float>(args.max_norm)};
  const std::array bindings{g, norm};
  target.dispatch({.name = clip.name,
                   .module = clip.module,
                   .bindings = bindings,
                   .push = bytes_of(push),
                   .groups = {groups(args.n, 256), 1, 1}});
}

inline std::optional<std::string> refuse_norm(const ops::GlobalGradNormArgs& args) { return refuse_large(args.g); }
inline std::optional<std::string> refuse_clip(const ops::ClipGradNormArgs& args) { return refuse_large(args.g); }

template <const Shader& squares, const Shader& total>
Kernel norm_kernel(std::string_view id) {
  return {.op = "global_grad_norm",
          .id = id,
          .backend = Backend::vulkan,
          .arithmetic = kShaderArithmetic,
          .source = "kernels/vulkan/global_grad_norm.comp",
          .summary = "partial sums of up to 1024 workgroups, added by one",
          .run = &run_typed<ops::GlobalGradNormArgs, &run_norm<squares, total>>,
          .refuse = &refuse_typed<ops::GlobalGradNormArgs, &refuse_norm>};
}

template <const Shader& squares, const Shader& total, const Shader& clip>
Kernel clip_kernel(std::string_view id) {
  return {.op = "clip_grad_norm",
          .id = id,
          .backend = Backend::vulkan,
          .arithmetic = kShaderArithmetic,
          .source = "kernels/vulkan/clip_grad_norm.comp",
          .summary = "partial sums of up to 1024 workgroups, added by one; one pass to scale",
          .run = &run_typed<ops::ClipGradNormArgs, &run_clip<squares, total, clip>>,
          .refuse = &refuse_typed<ops::ClipGradNormArgs, &refuse_clip>};
}

}  // namespace assay::vulkan
