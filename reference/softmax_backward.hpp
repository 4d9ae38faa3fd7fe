// Gradient of softmax.
#pragma once

#include "core/forms.hpp"
#include "core/sum.hpp"
#include "core/view.hpp"

namespace assay::reference {

/// dx[i,j] = y[i,j] (dy[i,j] - sum_k y[i,k] dy[i,k]) for y, dy, dx [rows, n], overwritten; null data: not wanted.
/// O(rows n).
/// Source: dy_j / dx_k = y_j (1 - y_k) for j = k, else -y_j y_k.
template <class T>
void softmax_backward(View<const T> y, View<const T> dy, View<T> dx) {
  if (dx.data() == nullptr) return;
  for (Index i = 0; i < y.dim(0); ++i) {
    Sum<T> sum;
    for (Index j = 0; j < y.dim(1); ++j) sum += y(i, j) * dy(i, j);
    const T mean = sum.value();
    for (Index j = 0; j < y.dim(1); ++j) dx(i, j) = scaled_difference(y(i, j), dy(i, j), mean);
  }
}

}  // namespace assay::reference
