// C = Aᵀ · B and its gradients.
#pragma once

#include "core/sum.hpp"
#include "core/view.hpp"

namespace assay::reference {

/// c[i,j] = sum_p a[p,i] b[p,j] for a [k, m], b [k, n], c [m, n]; c is overwritten and shares nothing with a, b.
/// O(m n k). Source: Golub & Van Loan, Matrix Computations, 4th ed., section 1.1.
template <class T>
void matmul_tn(View<const T> a, View<const T> b, View<T> c) {
  for (Index i = 0; i < c.dim(0); ++i)
    for (Index j = 0; j < c.dim(1); ++j) {
      Sum<T> sum;
      for (Index p = 0; p < a.dim(0); ++p) sum += a(p, i) * b(p, j);
      c(i, j) = sum.value();
    }
}

/// da[p,i] = sum_j b[p,j] dc[i,j] and db[p,j] = sum_i a[p,i] dc[i,j], overwritten; a gradient with null data
/// is not wanted. Source: c is linear in each of a and b; these are the transposed maps.
template <class T>
void matmul_tn_backward(View<const T> a, View<const T> b, View<const T> dc, View<T> da, View<T> db) {
  if (da.data() != nullptr)
    for (Index p = 0; p < a.dim(0); ++p)
      for (Index i = 0; i < a.dim(1); ++i) {
        Sum<T> sum;
        for (Index j = 0; j < b.dim(1); ++j) sum += b(p, j) * dc(i, j);
        da(p, i) = sum.value();
      }
  if (db.data() != nullptr)
    for (Index p = 0; p < b.dim(0); ++p)
      for (Index j = 0; j < b.dim(1); ++j) {
        Sum<T> sum;
        for (Index i = 0; i < a.dim(1); ++i) sum += a(p, i) * dc(i, j);
        db(p, j) = sum.value();
      }
}

}  // namespace assay::reference
