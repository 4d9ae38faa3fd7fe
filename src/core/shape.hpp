// Shapes and strides of tensors up to rank 4, in elements.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>

namespace assay {

using Index = std::int64_t;

/// Extents (or strides) of a tensor, outermost first. Rank 0 is a scalar of one element.
class Shape {
 public:
  static constexpr int kMaxRank = 4;

  constexpr Shape() = default;
  constexpr Shape(std::initializer_list<Index> extents) {
    for (Index extent : extents) push_back(extent);
  }

  constexpr int rank() const { return rank_; }
  constexpr Index operator[](int axis) const { return extents_[static_cast<std::size_t>(axis)]; }
  constexpr Index& operator[](int axis) { return extents_[static_cast<std::size_t>(axis)]; }

  /// Appends an innermost extent. More than kMaxRank extents are our own bug, and at() throws.
  constexpr void push_back(Index extent) { extents_.at(static_cast<std::size_t>(rank_++)) = extent; }

  /// Returns the number of elements: the product of the extents.
  constexpr Index size() const {
    Index product = 1;
    for (int axis = 0; axis < rank_; ++axis) product *= (*this)[axis];
    return product;
  }

  friend constexpr bool operator==(const Shape& x, const Shape& y) {
    if (x.rank_ != y.rank_) return false;
    for (int axis = 0; axis < x.rank_; ++axis)
      if (x[axis] != y[axis]) return false;
    return true;
  }

 private:
  std::array<Index, kMaxRank> extents_{};
  int rank_ = 0;
};

/// Returns the strides of a dense row-major tensor of this shape.
constexpr Shape row_major_strides(const Shape& shape) {
  Shape strides = shape;
  Index step = 1;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    strides[axis] = step;
    step *= shape[axis];
  }
  return strides;
}

/// Formats as "[2, 3]".
inline std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (int axis = 0; axis < shape.rank(); ++axis) text += (axis ? ", " : "") + std::to_string(shape[axis]);
  return text + "]";
}

}  // namespace assay
