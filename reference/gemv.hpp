// y = A · x and its gradients.
#pragma once

#include "core/sum.hpp"
#include "core/view.hpp"

namespace assay::reference {

/// y[i] = sum_p a[i,p] x[p] for a [m, k], x [k], y [m]; y is overwritten and shares nothing with a, x. O(m k).
/// Source: Golub & Van Loan, Matrix Computations, 4th ed., section 1.1.
template <class T>
void gemv(View<const T> a, View<const T> x, View<T> y) {
  for (Index i = 0; i < a.dim(0); ++i) {
    Sum<T> sum;
    for (Index p = 0; p < a.dim(1); ++p) sum += a(i, p) * x(p);
    y(i) = sum.value();
  }
}

/// da[i,p] = dy[i] x[p] and dx[p] = sum_i a[i,p] dy[i], overwritten; a gradient with null data is not wanted.
/// Source: y is linear in each of a and x; these are the transposed maps.
template <class T>
void gemv_backward(View<const T> a, View<const T> x, View<const T> dy, View<T> da, View<T> dx) {
  if (da.data() != nullptr)
    for (Index i = 0; i < a.dim(0); ++i)
      for (Index p = 0; p < a.dim(1); ++p) da(i, p) = dy(i) * x(p);
  if (dx.data() != nullptr)
    for (Index p = 0; p < a.dim(1); ++p) {
      Sum<T> sum;
      for (Index i = 0; i < a.dim(0); ++i) sum += a(i, p) * dy(i);
      dx(p) = sum.value();
    }
}

}  // namespace assay::reference
