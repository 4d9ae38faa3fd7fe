// y = alpha x and its gradient.
#pragma once

#include "core/bounded.hpp"
#include "core/view.hpp"

namespace assay::reference {

/// y[i,j] = alpha x[i,j] for x, y [m, n]; y is overwritten and shares nothing with x. O(m n).
/// Source: Lawson et al., ACM TOMS 5, 1979 (SSCAL).
template <class T>
void scale(View<const T> x, View<T> y, double alpha) {
  for (Index i = 0; i < y.dim(0); ++i)
    for (Index j = 0; j < y.dim(1); ++j) y(i, j) = T(alpha) * x(i, j);
}

/// dx = alpha dy, overwritten; null data: not wanted. The map is linear, so x is not used.
template <class T>
void scale_backward(View<const T> /*x*/, View<const T> dy, View<T> dx, double alpha) {
  if (dx.data() != nullptr) scale<T>(dy, dx, alpha);
}

}  // namespace assay::reference
