// The launcher of maps over the elements of row-major matrices (elementwise.glsl).
#pragma once

#include "kernels/vulkan/launch.hpp"

namespace assay::vulkan {

/// Push constants of elementwise.glsl.
struct MapPush {
  std::uint32_t m, n;
  std::uint32_t in_first_ld[2][2];
  std::uint32_t out_first, out_ld;
  float alpha;
};

/// One tensor of a map. ld = 0 broadcasts a row.
struct MapTensor {
  StorageBinding binding;
  Index ld;
};

/// A row-major matrix.
template <AnyView V>
MapTensor map_tensor(const VulkanDevice& device, const V& matrix) {
  return {bind(device, matrix), matrix.dim(0) > 1 ? matrix.stride(0) : matrix.dim(1)};
}

/// out[i,j] = f(in[i,j]...) for i < m, j < n.
template <std::size_t inputs>
void run_map(const Shader& shader, VulkanDevice& target, Index m, Index n, float alpha, const MapTensor& out,
             const std::array<MapTensor, inputs>& in) {
  bool dense = out.ld == n, aligned = out.binding.first % 4 == 0, rows_aligned = out.ld % 4 == 0;
  for (const MapTensor& t : in) {
    dense = dense && t.ld == n;
    aligned = aligned && t.binding.first % 4 == 0;
    rows_aligned = rows_aligned && t.ld % 4 == 0;
  }
  const auto ld = [&](const MapTensor& t) { return dense ? 0 : static_cast<std::uint32_t>(t.ld); };
  if (dense) n *= m, m = std::min<Index>(m, 1);
  const bool vectors = aligned && (dense || rows_aligned);
  const Index chunks = vectors ? (n + 3) / 4 : n;
  const std::uint32_t wide = chunks > 32 ? 64 : 8;
  const std::array<std::uint32_t, 3> constants{vectors, wide, 64 / wide};
  MapPush push{static_cast<std::uint32_t>(m), static_cast<std::uint32_t>(n), {}, out.binding.first, ld(out), alpha};
  std::array<StorageBinding, inputs + 1> bindings;
  for (std::size_t k = 0; k < inputs; ++k) {
    push.in_first_ld[k][0] = in[k].binding.first;
    push.in_first_ld[k][1] = ld(in[k]);
    bindings[k] = in[k].binding;
  }
  bindings[inputs] = out.binding;
  target.dispatch({.name = shader.name,
                   .module = shader.module,
                   .specialization = constants,
                   .bindings = bindings,
                   .push = bytes_of(push),
                   .groups = {groups(chunks, wide), groups(m, 64 / wide), 1}});
}

}  // namespace assay::vulkan
