// Shared by the launchers of shaders over rows (rows.glsl).
#pragma once

#include "kernels/vulkan/launch.hpp"

namespace assay::vulkan {

/// Rows that a workgroup takes at a time, and elements of a row that it takes in a turn.
inline constexpr Index kRowsOfGroup = 4, kRowTurn = 256;

/// Why a shader cannot take so many rows of n elements: its loops would turn too often. `passes` over a row.
inline std::optional<std::string> refuse_rows(Index rows, Index n, Index passes) {
  const Index turns = (rows + kRowsOfGroup * kMaxGroups - 1) / (kRowsOfGroup * kMaxGroups);
  return refuse_long(turns * (passes * ((n + kRowTurn - 1) / kRowTurn) + 16));
}

/// Why a grid cannot hold so many sequences along an axis: shaders of attention do not loop over them.
inline std::optional<std::string> refuse_batch(Index batch) {
  if (batch <= kMaxGroups) return std::nullopt;
  return "a batch above " + std::to_string(kMaxGroups) + " needs more workgroups than every device runs";
}

/// A tensor of the operation as f32: what shaders read and write.
inline View<float> f32(const StorageView& view) { return view.as<float>(); }

inline constexpr std::uint32_t u32(Index x) { return static_cast<std::uint32_t>(x); }

}  // namespace assay::vulkan
