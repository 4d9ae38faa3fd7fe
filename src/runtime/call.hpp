// One call of an operation with its types erased, as used by the engine, the registry and replay files. Dims, params
// and tensors are in the contract's order.
#pragma once

#include <vector>

#include "core/dtype.hpp"
#include "core/half.hpp"
#include "core/view.hpp"

namespace assay {

/// DType of a C++ element type.
template <class T>
inline constexpr DType dtype_of = DType::f32;
template <>
inline constexpr DType dtype_of<std::int32_t> = DType::i32;
template <>
inline constexpr DType dtype_of<std::uint8_t> = DType::u8;
template <>
inline constexpr DType dtype_of<Half> = DType::f16;
template <>
inline constexpr DType dtype_of<BFloat16> = DType::bf16;

/// Throws InputError: tensor `name` has type `given` where the contract says `wanted`.
[[noreturn]] void refuse_dtype(const char* name, DType given, DType wanted);

/// A strided tensor whose element type is known at run time.
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
  StorageView storage() const { return {dtype, data, shape, strides}; }
  /// Returns a typed view of the tensor that a contract calls `name`. Throws InputError if its element type differs.
  template <class T>
  View<T> expect(const char* name) const {
    if (dtype != dtype_of<T>) refuse_dtype(name, dtype, dtype_of<T>);
    return as<T>();
  }
};

struct Call {
  std::vector<Index> dims;
  std::vector<double> params;
  std::vector<Tensor> tensors;
};

}  // namespace assay
