// A strided view of a tensor in some memory space: host, CUDA or Vulkan.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "core/dtype.hpp"
#include "core/shape.hpp"

namespace assay {

/// Non-owning strided view. `data()` is the address of element (0, ..., 0) in the memory space of the tensor's device:
/// dereference it only for host tensors. Strides are in elements and not negative. An empty view may have a null
/// address.
template <class T>
class View {
 public:
  using Element = T;

  constexpr View() = default;
  /// Dense row-major view.
  constexpr View(T* data, const Shape& shape) : data_(data), shape_(shape), strides_(row_major_strides(shape)) {}
  constexpr View(T* data, const Shape& shape, const Shape& strides) : data_(data), shape_(shape), strides_(strides) {}
  /// View<float> converts to View<const float>.
  template <class U>
  requires(std::is_same_v<const U, T>) constexpr View(const View<U>& other)  // NOLINT(google-explicit-constructor)
      : data_(other.data()), shape_(other.shape()), strides_(other.strides()) {}

  constexpr T* data() const { return data_; }
  constexpr const Shape& shape() const { return shape_; }
  constexpr const Shape& strides() const { return strides_; }
  constexpr int rank() const { return shape_.rank(); }
  constexpr Index dim(int axis) const { return shape_[axis]; }
  constexpr Index stride(int axis) const { return strides_[axis]; }
  /// Number of elements.
  constexpr Index size() const { return shape_.size(); }

  constexpr T& operator()(Index i) const { return data_[i * strides_[0]]; }
  constexpr T& operator()(Index i, Index j) const { return data_[i * strides_[0] + j * strides_[1]]; }
  constexpr T& operator()(Index i, Index j, Index k) const {
    return data_[i * strides_[0] + j * strides_[1] + k * strides_[2]];
  }
  constexpr T& operator()(Index i, Index j, Index k, Index l) const {
    return data_[i * strides_[0] + j * strides_[1] + k * strides_[2] + l * strides_[3]];
  }

  /// Returns the same elements with the two axes of a matrix exchanged: element (i, j) of the result is element (j, i)
  /// of this view.
  constexpr View transposed() const { return {data_, Shape{shape_[1], shape_[0]}, Shape{strides_[1], strides_[0]}}; }
  /// Returns a vector of n elements as an [n, 1] matrix.
  constexpr View column() const { return {data_, Shape{shape_[0], 1}, Shape{strides_[0], 1}}; }

  /// Returns the distance in elements from the first to one past the last element reached (0 for an empty view).
  constexpr Index extent() const {
    if (size() == 0) return 0;
    Index last = 0;
    for (int axis = 0; axis < rank(); ++axis) last += (shape_[axis] - 1) * strides_[axis];
    return last + 1;
  }
  /// Returns whether the view is dense row-major without gaps (extents of 1 may have any stride).
  constexpr bool contiguous() const {
    Index step = 1;
    for (int axis = rank() - 1; axis >= 0; --axis) {
      if (shape_[axis] != 1 && strides_[axis] != step) return false;
      step *= shape_[axis];
    }
    return true;
  }

 private:
  T* data_ = nullptr;
  Shape shape_{};
  Shape strides_{};
};

/// A view whose element type is known at run time: float32, float16 or bfloat16.
class StorageView {
 public:
  constexpr StorageView() = default;
  constexpr StorageView(DType dtype, void* data, const Shape& shape, const Shape& strides)
      : dtype_(dtype), bytes_(static_cast<std::byte*>(data), shape, strides) {}
  /// Converts from a view of floats.
  template <class T>
  requires std::is_same_v < std::remove_const_t<T>,
  float > constexpr StorageView(const View<T>& view)  // NOLINT(google-explicit-constructor)
      : StorageView(DType::f32, const_cast<float*>(view.data()), view.shape(), view.strides()) {}

  constexpr DType dtype() const { return dtype_; }
  constexpr void* data() const { return bytes_.data(); }
  constexpr const Shape& shape() const { return bytes_.shape(); }
  constexpr const Shape& strides() const { return bytes_.strides(); }
  constexpr int rank() const { return bytes_.rank(); }
  constexpr Index dim(int axis) const { return bytes_.dim(axis); }
  constexpr Index stride(int axis) const { return bytes_.stride(axis); }
  constexpr Index size() const { return bytes_.size(); }
  constexpr Index extent() const { return bytes_.extent(); }
  constexpr bool contiguous() const { return bytes_.contiguous(); }
  /// As View::transposed() and View::column().
  constexpr StorageView transposed() const {
    return {dtype_, data(), Shape{dim(1), dim(0)}, Shape{stride(1), stride(0)}};
  }
  constexpr StorageView column() const { return {dtype_, data(), Shape{dim(0), 1}, Shape{stride(0), 1}}; }
  /// Returns a typed view; T must match dtype().
  template <class T>
  View<T> as() const {
    return {static_cast<T*>(data()), shape(), strides()};
  }

 private:
  DType dtype_ = DType::f32;
  View<std::byte> bytes_;  // shape and strides count elements
};

/// Returns the bytes of one element.
template <class T>
constexpr std::size_t element_bytes(const View<T>&) {
  return sizeof(T);
}
constexpr std::size_t element_bytes(const StorageView& v) { return size_of(v.dtype()); }

template <class V>
concept AnyView = requires(const V& v) {
  element_bytes(v);
  v.strides();
};

/// Returns whether the rows of a matrix (or vector) are dense and do not overlap: inner stride 1 and leading dimension
/// at least the width. Extents of at most 1 may have any stride.
template <AnyView V>
constexpr bool row_major(const V& v) {
  const int inner = v.rank() - 1;
  if (inner < 0 || v.size() == 0) return true;
  if (v.dim(inner) > 1 && v.stride(inner) != 1) return false;
  Index reach = v.dim(inner);
  for (int axis = inner - 1; axis >= 0; --axis) {
    if (v.dim(axis) > 1 && v.stride(axis) < reach) return false;
    reach = v.dim(axis) > 1 ? v.stride(axis) * (v.dim(axis) - 1) + reach : reach;
  }
  return true;
}

/// Returns whether two different indices of the view reach the same element (a broadcast or too small a stride).
bool self_overlap(const Shape& shape, const Shape& strides);

/// Returns whether two strided address sets share a byte. Exact for rows with unit inner stride; otherwise intersecting
/// address ranges count as an overlap.
bool overlap(std::uintptr_t x, const Shape& x_shape, const Shape& x_strides, std::size_t x_bytes, std::uintptr_t y,
             const Shape& y_shape, const Shape& y_strides, std::size_t y_bytes);

/// Returns whether views x and y share memory.
template <AnyView V, AnyView W>
bool overlap(const V& x, const W& y) {
  const auto x_begin = reinterpret_cast<std::uintptr_t>(x.data());
  const auto y_begin = reinterpret_cast<std::uintptr_t>(y.data());
  const auto x_end = x_begin + static_cast<std::uintptr_t>(x.extent()) * element_bytes(x);
  const auto y_end = y_begin + static_cast<std::uintptr_t>(y.extent()) * element_bytes(y);
  if (x_begin == x_end || y_begin == y_end || x_end <= y_begin || y_end <= x_begin) return false;
  return overlap(x_begin, x.shape(), x.strides(), element_bytes(x), y_begin, y.shape(), y.strides(), element_bytes(y));
}

}  // namespace assay
