// One call of an operation with its types erased: what the engine, the registry and replay files handle.
// Order of dims, params and tensors is the contract's own.
#pragma once

#include <vector>

#include "core/dtype.hpp"
#include "core/view.hpp"

namespace assay {

/// A strided tensor whose element type is data.
struct Tensor {
  DType dtype = DType::f32;
  void* data = nullptr;
  Shape shape;
  Shape strides;

  /// Typed view; T must match dtype (checked by the generated unpacking, which knows both).
  template <class T>
  View<T> as() const {
    return {static_cast<T*>(data), shape, strides};
  }
};

struct Call {
  std::vector<Index> dims;
  std::vector<double> params;
  std::vector<Tensor> tensors;
};

}  // namespace assay
