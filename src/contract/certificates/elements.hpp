// Elements of tensors in any storage format, for certificates.
#pragma once

#include <limits>
#include <vector>

#include "core/half.hpp"
#include "core/view.hpp"

namespace assay::contract {

template <class... I>
double element(const StorageView& v, I... index) {
  switch (v.dtype()) {
    case DType::f16: return widen(v.as<const Half>()(index...));
    case DType::bf16: return widen(v.as<const BFloat16>()(index...));
    default: return v.as<const float>()(index...);
  }
}

/// Rounding error of a store: relative for values of at least `smallest`, unit * smallest below. From `limit` on the
/// stored value is infinite.
struct StorageRounding {
  double unit, smallest, limit;
};
inline StorageRounding storage_rounding(DType dtype) {
  if (dtype == DType::f16) return {0x1p-11, 0x1p-14, 65520};
  if (dtype == DType::bf16) return {0x1p-8, 0x1p-126, 0x1.ffp127};
  return {0, 0x1p-126, std::numeric_limits<double>::infinity()};
}

/// A matrix as floats: in place if it is stored so, otherwise a dense copy.
class Widened {
 public:
  explicit Widened(const StorageView& matrix) {
    if (matrix.dtype() == DType::f32) {
      view_ = matrix.as<const float>();
      return;
    }
    values_.reserve(static_cast<std::size_t>(matrix.size()));
    for (Index i = 0; i < matrix.dim(0); ++i)
      for (Index j = 0; j < matrix.dim(1); ++j) values_.push_back(static_cast<float>(element(matrix, i, j)));
    view_ = {values_.data(), matrix.shape()};
  }
  Widened(const Widened&) = delete;
  Widened& operator=(const Widened&) = delete;

  View<const float> view() const { return view_; }

 private:
  std::vector<float> values_;
  View<const float> view_;
};

}  // namespace assay::contract
