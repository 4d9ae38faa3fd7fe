// y = x + bias for every row of x.
#pragma once

#include "core/bounded.hpp"
#include "core/view.hpp"

namespace assay::reference {

/// y[i,j] = x[i,j] + bias[j] for x, y [m, n], bias [n]; y is overwritten and shares nothing with x, bias. O(m n).
/// Source: Goodfellow, Bengio & Courville, Deep Learning, 2016, section 2.1.
template <class T>
void bias_add(View<const T> x, View<const T> bias, View<T> y) {
  for (Index i = 0; i < y.dim(0); ++i)
    for (Index j = 0; j < y.dim(1); ++j) y(i, j) = x(i, j) + bias(j);
}

}  // namespace assay::reference
