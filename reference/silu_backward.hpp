// The gradient of y = x sigmoid(x).
#pragma once

#include "core/forms.hpp"
#include "core/view.hpp"

namespace assay::reference {

/// dx = dy (s + x s (1 - s)) with s = sigmoid(x), for x, dy, dx [m, n]; dx is overwritten and shares nothing with x,
/// dy; null data: not wanted. O(m n). The bound holds for s (1 + x (1 - s)) too: its roundings are fewer, and all
/// relative to s, |x s (1 - s)| or the slope, where those of this form are. Source: Elfwing, Uchibe & Doya, 2017,
/// equation 5.
template <class T>
void silu_backward(View<const T> x, View<const T> dy, View<T> dx) {
  if (dx.data() == nullptr) return;
  for (Index i = 0; i < dx.dim(0); ++i)
    for (Index j = 0; j < dx.dim(1); ++j) {
      const T s = sigmoid(x(i, j));
      const T slope = s + product(x(i, j), s, sigmoid_complement(x(i, j)));
      dx(i, j) = dy(i, j) * slope;
    }
}

}  // namespace assay::reference
