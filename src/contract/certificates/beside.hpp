// Matrices side by side: the product of two such rows of matrices is the sum of their products.
#pragma once

#include <initializer_list>
#include <vector>

#include "core/view.hpp"

namespace assay::contract {

/// [parts...], each with this many rows, in memory of its own.
class SideBySide {
 public:
  SideBySide(Index rows, std::initializer_list<View<const float>> parts) : shape_{rows, 0} {
    for (const View<const float>& part : parts) shape_ = {rows, shape_[1] + part.dim(1)};
    values_.resize(static_cast<std::size_t>(rows * shape_[1]));
    Index first = 0;
    for (const View<const float>& part : parts) {
      for (Index i = 0; i < rows; ++i)
        for (Index j = 0; j < part.dim(1); ++j) values_[static_cast<std::size_t>(i * shape_[1] + first + j)] = part(i, j);
      first += part.dim(1);
    }
  }
  View<const float> view() const { return {values_.data(), shape_}; }

 private:
  Shape shape_;
  std::vector<float> values_;
};

/// A column of so many ones for each row of `bias` [0 or 1, n]: what multiplies it as a term of a sum.
inline View<const float> ones_for(View<const float> bias, Index rows) {
  static constexpr float kOne = 1;
  return {&kOne, {rows, bias.dim(0)}, {0, 0}};
}

}  // namespace assay::contract
