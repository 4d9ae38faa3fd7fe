// The launcher of the norm of a gradient, shared by global_grad_norm and clip_grad_norm.
#pragma once

#include "kernels/vulkan/launch.hpp"
#include "shaders/global_grad_norm_partial.hpp"
#include "shaders/global_grad_norm_total.hpp"

namespace assay::vulkan {

/// Push constants of global_grad_norm.comp and global_grad_norm_total.comp.
struct SquaresPush {
  std::uint32_t n, g_first, partial_first;
};
struct NormPush {
  std::uint32_t count, partial_first, norm_first;
};

/// Workgroups whose partial sums one workgroup adds: enough to fill any device.
inline constexpr Index kNormGroups = 1024;

/// norm[0] = sqrt(sum_i g[i]^2). The device frees the scratch memory after use.
inline void dispatch_norm(VulkanDevice& target, Index n, const StorageBinding& g, const StorageBinding& norm) {
  const Index count = std::clamp<Index>((n + 255) / 256, 1, kNormGroups);
  const Buffer scratch = target.allocate(static_cast<std::size_t>(count) * sizeof(float));
  const StorageBinding partial = target.bind(scratch.address(), scratch.bytes());
  const SquaresPush squares_push{static_cast<std::uint32_t>(n), g.first, partial.first};
  const std::array squares_bindings{g, partial};
  target.dispatch({.name = shaders::global_grad_norm_partial.name,
                   .module = shaders::global_grad_norm_partial.module,
                   .bindings = squares_bindings,
                   .push = bytes_of(squares_push),
                   .groups = {static_cast<std::uint32_t>(count), 1, 1}});
  const NormPush norm_push{static_cast<std::uint32_t>(count), partial.first, norm.first};
  const std::array norm_bindings{partial, norm};
  target.dispatch({.name = shaders::global_grad_norm_total.name,
                   .module = shaders::global_grad_norm_total.module,
                   .bindings = norm_bindings,
                   .push = bytes_of(norm_push)});
}

}  // namespace assay::vulkan
