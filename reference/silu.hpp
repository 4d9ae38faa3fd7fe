// y = x sigmoid(x).
#pragma once

#include "core/forms.hpp"
#include "core/view.hpp"

namespace assay::reference {

/// y[i,j] = x[i,j] / (1 + exp(-x[i,j])) for x, y [m, n]; y is overwritten and shares nothing with x. O(m n).
/// Source: Elfwing, Uchibe & Doya, 2017, equation 4.
template <class T>
void silu(View<const T> x, View<T> y) {
  for (Index i = 0; i < y.dim(0); ++i)
    for (Index j = 0; j < y.dim(1); ++j) y(i, j) = x(i, j) * sigmoid(x(i, j));
}

}  // namespace assay::reference
