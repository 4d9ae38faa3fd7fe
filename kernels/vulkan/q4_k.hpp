// Binding of rows of Q4_K super-blocks to shaders.
#pragma once

#include "core/q4_k.hpp"
#include "kernels/vulkan/launch.hpp"

namespace assay::vulkan {

/// Returns the refusal if rows of bytes start between words, or extend too far.
template <class T>
std::optional<std::string> refuse_bytes(const View<T>& blocks) {
  if (blocks.extent() > 4 * kMaxExtent)
    return "blocks reach over " + std::to_string(blocks.extent()) + " bytes; shaders index at most " +
           std::to_string(4 * kMaxExtent);
  return std::nullopt;
}

}  // namespace assay::vulkan
