// Gradients of rmsnorm.
#pragma once

#include "core/forms.hpp"
#include "core/sum.hpp"
#include "core/view.hpp"
#include "reference/orders.hpp"

namespace assay::reference {

/// With a = dy * weight and xn = x * rrms: dx[i,j] = rrms[i] (a[i,j] - xn[i,j] sum_k a[i,k] xn[i,k] / n) and
/// dweight[j] = sum_i dy[i,j] xn[i,j], overwritten; a gradient with null data is not wanted. O(rows n). The bound of dx
/// also holds for rrms / n (n a - xn sum_k a_k xn_k), and for sums of a x that are multiplied by rrms² afterwards.
/// Source: the derivative of rrms is -rrms³ x / n; Zhang & Sennrich, NeurIPS 2019, section 4.2.
template <class T>
void rmsnorm_backward(View<const T> x, View<const T> weight, View<const T> rrms, View<const T> dy, View<T> dx,
                      View<T> dweight) {
  const Index rows = x.dim(0), n = x.dim(1);
  const T width(static_cast<double>(n)), share(1 / static_cast<double>(n));
  if (dx.data() != nullptr)
    for (Index i = 0; i < rows; ++i) {
      const T r = rrms(i);
      Sum<T> projection, plain;
      for (Index j = 0; j < n; ++j) {
        projection += product(dy(i, j), weight(j), T(x(i, j) * r));
        plain += product(dy(i, j), weight(j), x(i, j));
      }
      const T sum = projection.value(), mean = quotient(sum, width), part = quotient(r, width);
      const T along = product_of_four(r, r, plain.value(), share);
      for (Index j = 0; j < n; ++j) {
        const T a(dy(i, j) * weight(j)), xn(x(i, j) * r);
        const T whole = part * T(product(width, dy(i, j), weight(j)) - T(xn * sum));
        const T afterwards =
            any_order(scaled_difference(r, a, T(x(i, j) * along)), T(T(r * a) - product(r, along, x(i, j))));
        dx(i, j) = any_order(scaled_difference(r, a, T(xn * mean)), any_order(whole, afterwards));
      }
    }
  if (dweight.data() != nullptr)
    for (Index j = 0; j < n; ++j) {
      Sum<T> sum;
      for (Index i = 0; i < rows; ++i) sum += product(dy(i, j), x(i, j), rrms(i));
      dweight(j) = sum.value();
    }
}

}  // namespace assay::reference
