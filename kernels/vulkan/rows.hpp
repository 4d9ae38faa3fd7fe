// Refusals and constants shared by the launchers of shaders over rows (rows.glsl).
#pragma once

#include "kernels/vulkan/launch.hpp"

namespace assay::vulkan {

/// Rows per workgroup at a time, and elements of a row per iteration.
inline constexpr Index kRowsOfGroup = 4, kRowChunk = 256;

/// Returns the refusal if rows x n needs more loop iterations than drivers guarantee. `passes` over a row.
inline std::optional<std::string> refuse_rows(Index rows, Index n, Index passes) {
  const Index turns = (rows + kRowsOfGroup * kMaxGroups - 1) / (kRowsOfGroup * kMaxGroups);
  return refuse_long(turns * (passes * ((n + kRowChunk - 1) / kRowChunk) + 16));
}

/// Returns the refusal if a grid cannot hold `batch` sequences along an axis: shaders of attention do not loop over
/// sequences.
inline std::optional<std::string> refuse_batch(Index batch) {
  if (batch <= kMaxGroups) return std::nullopt;
  return "a batch above " + std::to_string(kMaxGroups) + " needs more workgroups than every device runs";
}

/// Views a tensor as f32, the format that shaders read and write.
inline View<float> f32(const StorageView& view) { return view.as<float>(); }

inline constexpr std::uint32_t u32(Index x) { return static_cast<std::uint32_t>(x); }

}  // namespace assay::vulkan
