// Shared by the launchers of double quantization.
#pragma once

#include "kernels/vulkan/launch.hpp"

namespace assay::vulkan {

/// Returns the leading dimension of a row-major matrix; the stride of a single row is meaningless.
template <class T>
std::uint32_t leading(const View<T>& matrix) {
  return static_cast<std::uint32_t>(matrix.dim(0) > 1 ? matrix.stride(0) : matrix.dim(1));
}

}  // namespace assay::vulkan
