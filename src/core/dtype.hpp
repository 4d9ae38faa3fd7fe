// Element types of tensors.
#pragma once

#include <cstddef>
#include <string_view>

namespace assay {

enum class DType { f32 };

constexpr std::size_t size_of(DType dtype) {
  switch (dtype) {
    case DType::f32: return 4;
  }
  return 0;
}

constexpr std::string_view name(DType dtype) {
  switch (dtype) {
    case DType::f32: return "f32";
  }
  return "?";
}

}  // namespace assay
