// A shader of this repository, compiled and embedded by shaders.cmake.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace assay::vulkan {

struct Shader {
  std::string_view name;
  std::span<const std::uint32_t> module;  ///< SPIR-V 1.5, accepted by spirv-val
};

}  // namespace assay::vulkan
