// C = A · B and its gradients.
#pragma once

#include "core/sum.hpp"
#include "core/view.hpp"

namespace assay::reference {

/// c[i,j] = sum_p a[i,p] b[p,j] for a [m, k], b [k, n], c [m, n]; c is overwritten and shares nothing with a, b.
/// O(m n k). Source: Golub & Van Loan, Matrix Computations, 4th ed., section 1.1.
template <class T>
void matmul(View<const T> a, View<const T> b, View<T> c) {
  for (Index i = 0; i < c.dim(0); ++i)
    for (Index j = 0; j < c.dim(1); ++j) {
      Sum<T> sum;
      for (Index p = 0; p < a.dim(1); ++p) sum += a(i, p) * b(p, j);
      c(i, j) = sum.value();
    }
}

/// da[i,p] = sum_j dc[i,j] b[p,j] and db[p,j] = sum_i a[i,p] dc[i,j], overwritten; a gradient with null data
/// is not wanted. Source: c is linear in each of a and b; these are the transposed maps.
template <class T>
void matmul_backward(View<const T> a, View<const T> b, View<const T> dc, View<T> da, View<T> db) {
  if (da.data() != nullptr)
    for (Index i = 0; i < a.dim(0); ++i)
      for (Index p = 0; p < a.dim(1); ++p) {
        Sum<T> sum;
        for (Index j = 0; j < b.dim(1); ++j) sum += dc(i, j) * b(p, j);
        da(i, p) = sum.value();
      }
  if (db.data() != nullptr)
    for (Index p = 0; p < b.dim(0); ++p)
      for (Index j = 0; j < b.dim(1); ++j) {
        Sum<T> sum;
        for (Index i = 0; i < a.dim(0); ++i) sum += a(i, p) * dc(i, j);
        db(p, j) = sum.value();
      }
}

}  // namespace assay::reference
