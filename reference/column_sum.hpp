// Sums of the columns of a matrix.
#pragma once

#include "core/sum.hpp"
#include "core/view.hpp"

namespace assay::reference {

/// y[j] = sum_i x[i,j] for x [m, n], y [n]; y is overwritten and shares nothing with x. O(m n).
/// Source: Goodfellow, Bengio & Courville, Deep Learning, 2016, section 6.5.
template <class T>
void column_sum(View<const T> x, View<T> y) {
  for (Index j = 0; j < x.dim(1); ++j) {
    Sum<T> sum;
    for (Index i = 0; i < x.dim(0); ++i) sum += x(i, j);
    y(j) = sum.value();
  }
}

}  // namespace assay::reference
