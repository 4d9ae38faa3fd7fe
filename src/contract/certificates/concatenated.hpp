// Horizontal concatenation of matrices: the product of two concatenations is the sum of the products of their parts.
#pragma once

#include <initializer_list>
#include <vector>

#include "core/view.hpp"

namespace assay::contract {

/// Owns a copy of [parts...], each with `rows` rows.
class Concatenated {
 public:
  Concatenated(Index rows, std::initializer_list<View<const float>> parts) : shape_{rows, 0} {
    for (const View<const float>& part : parts) shape_ = {rows, shape_[1] + part.dim(1)};
    values_.resize(static_cast<std::size_t>(rows * shape_[1]));
    Index first = 0;
    for (const View<const float>& part : parts) {
      for (Index i = 0; i < rows; ++i)
        for (Index j = 0; j < part.dim(1); ++j)
          values_[static_cast<std::size_t>(i * shape_[1] + first + j)] = part(i, j);
      first += part.dim(1);
    }
  }
  View<const float> view() const { return {values_.data(), shape_}; }

 private:
  Shape shape_;
  std::vector<float> values_;
};

/// Returns a [rows, 0 or 1] matrix of ones, a column if `bias` [0 or 1, n] has a row: its product with `bias` adds the
/// bias to each sum.
inline View<const float> ones_for(View<const float> bias, Index rows) {
  static constexpr float kOne = 1;
  return {&kOne, {rows, bias.dim(0)}, {0, 0}};
}

}  // namespace assay::contract
