#include "core/accuracy.hpp"

namespace assay {

std::string_view name(FunctionLibrary library) {
  constexpr std::string_view names[] = {"c_library", "highway", "cuda", "cuda_exp2", "vulkan", "octant", "numpy"};
  return names[static_cast<int>(library)];
}

std::string_view name(Function function) {
  constexpr std::string_view names[] = {
      "divide", "sqrt", "reciprocal_sqrt", "exp", "expm1", "log", "log1p", "sin", "cos", "tanh", "pow"};
  return names[static_cast<int>(function)];
}

}  // namespace assay
