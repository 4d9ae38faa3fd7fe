// Binding and dispatch shared by the launchers of silu_mul and its gradients.
#pragma once

#include "kernels/vulkan/rows.hpp"

namespace assay::vulkan {

/// Binds matrices of one shape and dispatches over their rows. Push constants are rows, n, and (first, leading
/// dimension) of each matrix in turn; specialization constants say which matrices allow vector access.
template <std::size_t count>
void run_over_rows(const Shader& shader, Index rows, Index n, const std::array<StorageView, count>& matrices,
                   Device& device) {
  VulkanDevice& target = vulkan_device(device);
  std::array<StorageBinding, count> bindings;
  std::array<std::uint32_t, count> vector;
  std::array<std::uint32_t, 2 + 2 * count> push{u32(rows), u32(n)};
  for (std::size_t m = 0; m < count; ++m) {
    bindings[m] = bind(target, matrices[m]);
    vector[m] = vectors(matrices[m], bindings[m]);
    push[2 + 2 * m] = bindings[m].first;
    push[3 + 2 * m] = step(matrices[m], 0);
  }
  target.dispatch({.name = shader.name,
                   .module = shader.module,
                   .specialization = vector,
                   .bindings = bindings,
                   .push = bytes_of(push),
                   .groups = {groups(rows, kRowsOfGroup), 1, 1}});
}

}  // namespace assay::vulkan
