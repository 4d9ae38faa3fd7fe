// The gradient of sums of columns.
#pragma once

#include "core/view.hpp"

namespace assay::reference {

/// dx[i,j] = dy[j] for dy [n], dx [m, n]; dx is overwritten; null data: not wanted. O(m n). Source: the sum is linear;
/// this is the transposed map.
template <class T>
void column_sum_backward(View<const T> dy, View<T> dx) {
  if (dx.data() == nullptr) return;
  for (Index i = 0; i < dx.dim(0); ++i)
    for (Index j = 0; j < dx.dim(1); ++j) dx(i, j) = dy(j);
}

}  // namespace assay::reference
