// dst = srcᵀ and its gradient.
#pragma once

#include "core/view.hpp"

namespace assay::reference {

/// dst[j,i] = src[i,j] for src [m, n], dst [n, m]: a copy, bit for bit; dst shares nothing with src. O(m n).
/// Source: Golub & Van Loan, Matrix Computations, 4th ed., section 1.1.
template <class T>
void transpose(View<const T> src, View<T> dst) {
  for (Index i = 0; i < src.dim(0); ++i)
    for (Index j = 0; j < src.dim(1); ++j) dst(j, i) = src(i, j);
}

/// dsrc[i,j] = ddst[j,i], overwritten; null data: not wanted. The map is linear, so src is not used.
template <class T>
void transpose_backward(View<const T> /*src*/, View<const T> ddst, View<T> dsrc) {
  if (dsrc.data() == nullptr) return;
  for (Index i = 0; i < dsrc.dim(0); ++i)
    for (Index j = 0; j < dsrc.dim(1); ++j) dsrc(i, j) = ddst(j, i);
}

}  // namespace assay::reference
