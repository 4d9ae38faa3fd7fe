// y = silu(gate) · up.
#pragma once

#include "core/forms.hpp"
#include "core/view.hpp"

namespace assay::reference {

/// y[i,j] = gate[i,j] sigmoid(gate[i,j]) up[i,j] for gate, up, y [rows, n]; y is overwritten and shares nothing with
/// gate and up. O(rows n).
/// Source: Shazeer, arXiv:2002.05202, equation 6.
template <class T>
void silu_mul(View<const T> gate, View<const T> up, View<T> y) {
  for (Index i = 0; i < y.dim(0); ++i)
    for (Index j = 0; j < y.dim(1); ++j) y(i, j) = product(gate(i, j), sigmoid(gate(i, j)), up(i, j));
}

}  // namespace assay::reference
