// Shader-side addressing of [batch, position, head, element] tensors (attention_rows.glsl).
#pragma once

#include "kernels/vulkan/rows.hpp"

namespace assay::vulkan {

/// Offset of the first element in its buffer, and the strides of batch, position and head.
struct HeadTensor {
  std::uint32_t first, batch, position, head;
};

template <AnyView V>
HeadTensor head_tensor(const V& view, const StorageBinding& binding) {
  return {binding.first, step(view, 0), step(view, 1), step(view, 2)};
}

/// Returns true if every head of the tensor starts at a multiple of four elements.
inline bool aligned_heads(const HeadTensor& of) { return (of.first | of.batch | of.position | of.head) % 4 == 0; }

/// Rows and keys per workgroup at a time, elements of a product that it stages, and unrolled iterations of either loop
/// (attention_tile.glsl).
inline constexpr Index kTileRows = 64, kTileDepth = 16, kTileStep = 4;

/// Return the iterations of a product over d elements, and of a sum over a tile's rows, in shaders of
/// attention_tile.glsl.
inline Index product_iterations(Index d) { return (d + kTileDepth - 1) / kTileDepth * (1 + kTileDepth / kTileStep); }
inline Index sum_iterations(Index d) { return kTileRows / kTileStep + (d <= 64 ? 2 : d <= 128 ? 4 : 8); }
inline Index tiles_of(Index rows) { return (rows + kTileRows - 1) / kTileRows; }

/// Returns the refusal if a grid cannot hold the blocks of `rows` rows along an axis: shaders of attention do not loop
/// over blocks.
inline std::optional<std::string> refuse_blocks(Index rows) {
  if (rows <= kMaxGroups * kTileRows) return std::nullopt;
  return "more than " + std::to_string(kMaxGroups * kTileRows) + " rows need more workgroups than every device runs";
}

}  // namespace assay::vulkan
