// Shared by the launchers of double quantization.
#pragma once

#include "kernels/vulkan/launch.hpp"

namespace assay::vulkan {

/// Leading dimension of a row-major matrix; that of a single row says nothing.
template <class T>
std::uint32_t leading(const View<T>& matrix) {
  return static_cast<std::uint32_t>(matrix.dim(0) > 1 ? matrix.stride(0) : matrix.dim(1));
}

}  // namespace assay::vulkan
