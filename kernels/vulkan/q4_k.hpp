// Rows of Q4_K super-blocks as shaders bind them.
#pragma once

#include "core/q4_k.hpp"
#include "kernels/vulkan/launch.hpp"

namespace assay::vulkan {

/// Why a kernel cannot take these rows of bytes: they start between words, or reach too far.
template <class T>
std::optional<std::string> refuse_bytes(const View<T>& blocks) {
  if (blocks.extent() > 4 * kMaxExtent)
    return "blocks reach over " + std::to_string(blocks.extent()) + " bytes; shaders index at most " +
           std::to_string(4 * kMaxExtent);
  return std::nullopt;
}

}  // namespace assay::vulkan
