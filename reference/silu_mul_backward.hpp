// Gradients of silu_mul.
#pragma once

#include "core/forms.hpp"
#include "core/view.hpp"
#include "reference/orders.hpp"

namespace assay::reference {

/// With s = sigmoid(gate): dgate = dy up (s + gate s (1 - s)) and dup = dy gate s, all [rows, n], overwritten; a
/// gradient with null data is not wanted. O(rows n). The bound also holds for dy up s (1 + gate (1 - s)) in any order.
/// Source: Elfwing, Uchibe & Doya, arXiv:1702.03118, equation 5.
template <class T>
void silu_mul_backward(View<const T> gate, View<const T> up, View<const T> dy, View<T> dgate, View<T> dup) {
  for (Index i = 0; i < dy.dim(0); ++i)
    for (Index j = 0; j < dy.dim(1); ++j) {
      const T g = gate(i, j), s = sigmoid(g);
      if (dgate.data() != nullptr) {
        const T rest = sigmoid_complement(g), slope = s + product(g, s, rest), factor = T(1) + T(g * rest);
        dgate(i, j) = any_order(product(dy(i, j), up(i, j), slope), product_of_four(dy(i, j), up(i, j), s, factor));
      }
      if (dup.data() != nullptr) dup(i, j) = product(dy(i, j), g, s);
    }
}

}  // namespace assay::reference
