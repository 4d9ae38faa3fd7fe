// Gradients of rmsnorm.
#pragma once

#include "core/forms.hpp"
#include "core/sum.hpp"
#include "core/view.hpp"

namespace assay::reference {

/// With a = dy * weight and xn = x * rrms: dx[i,j] = rrms[i] (a[i,j] - xn[i,j] sum_k a[i,k] xn[i,k] / n) and
/// dweight[j] = sum_i dy[i,j] xn[i,j], overwritten; a gradient with null data is not wanted. O(rows n).
/// Source: the derivative of rrms is -rrms³ x / n; Zhang & Sennrich, NeurIPS 2019, section 4.2.
template <class T>
void rmsnorm_backward(View<const T> x, View<const T> weight, View<const T> rrms, View<const T> dy, View<T> dx,
                      View<T> dweight) {
  const Index rows = x.dim(0), n = x.dim(1);
  if (dx.data() != nullptr)
    for (Index i = 0; i < rows; ++i) {
      Sum<T> projection;
      for (Index j = 0; j < n; ++j) projection += product(dy(i, j), weight(j), T(x(i, j) * rrms(i)));
      const T mean = quotient(projection.value(), T(static_cast<double>(n)));
      for (Index j = 0; j < n; ++j)
        dx(i, j) = scaled_difference(rrms(i), T(dy(i, j) * weight(j)), T(T(x(i, j) * rrms(i)) * mean));
    }
  if (dweight.data() != nullptr)
    for (Index j = 0; j < n; ++j) {
      Sum<T> sum;
      for (Index i = 0; i < rows; ++i) sum += dy(i, j) * T(x(i, j) * rrms(i));
      dweight(j) = sum.value();
    }
}

}  // namespace assay::reference
