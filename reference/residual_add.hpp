// y = x + alpha r and its gradients.
#pragma once

#include "core/bounded.hpp"
#include "core/view.hpp"

namespace assay::reference {

/// y[i,j] = x[i,j] + alpha r[i,j] for x, r, y [m, n]; y is overwritten and shares nothing with x, r. O(m n).
/// Source: He et al., CVPR 2016, equation 1.
template <class T>
void residual_add(View<const T> x, View<const T> r, View<T> y, double alpha) {
  for (Index i = 0; i < y.dim(0); ++i)
    for (Index j = 0; j < y.dim(1); ++j) y(i, j) = x(i, j) + T(alpha) * r(i, j);
}

/// dx = dy and dr = alpha dy, overwritten; null data: not wanted. The map is linear, so x and r are not used.
template <class T>
void residual_add_backward(View<const T> /*x*/, View<const T> /*r*/, View<const T> dy, View<T> dx, View<T> dr,
                           double alpha) {
  for (Index i = 0; i < dy.dim(0); ++i)
    for (Index j = 0; j < dy.dim(1); ++j) {
      if (dx.data() != nullptr) dx(i, j) = dy(i, j);
      if (dr.data() != nullptr) dr(i, j) = T(alpha) * dy(i, j);
    }
}

}  // namespace assay::reference
