// The gradient of y = x sigmoid(x).
#pragma once

#include "core/forms.hpp"
#include "core/view.hpp"
#include "reference/orders.hpp"

namespace assay::reference {

/// dx = dy (s + x s (1 - s)) with s = sigmoid(x), for x, dy, dx [m, n]; dx is overwritten and shares nothing with x,
/// dy; null data: not wanted. O(m n). The bound also holds for dy s (1 + x (1 - s)) in any order. Source: Elfwing,
/// Uchibe & Doya, 2017, equation 5.
template <class T>
void silu_backward(View<const T> x, View<const T> dy, View<T> dx) {
  if (dx.data() == nullptr) return;
  for (Index i = 0; i < dx.dim(0); ++i)
    for (Index j = 0; j < dx.dim(1); ++j) {
      const T s = sigmoid(x(i, j)), rest = sigmoid_complement(x(i, j));
      const T slope = s + product(x(i, j), s, rest);
      dx(i, j) = any_order(T(dy(i, j) * slope), product(dy(i, j), s, T(T(1) + T(x(i, j) * rest))));
    }
}

}  // namespace assay::reference
