// The gradient of the mean of the first tokens of each sequence.
#pragma once

#include "core/forms.hpp"
#include "core/view.hpp"

namespace assay::reference {

/// dx[b,i,j] = dy[b,j] / lengths[b] where i < lengths[b], else 0, for lengths [b] from 1 to s, dy [b, h], dx [b, s, h];
/// dx is overwritten; null data: not wanted. O(b s h). Source: the mean is linear; this is the transposed map.
template <class T>
void mean_pool_backward(View<const T> lengths, View<const T> dy, View<T> dx) {
  if (dx.data() == nullptr) return;
  for (Index b = 0; b < dx.dim(0); ++b)
    for (Index i = 0; i < dx.dim(1); ++i)
      for (Index j = 0; j < dx.dim(2); ++j) {
        const Index length = whole(lengths(b));
        dx(b, i, j) = i < length ? quotient(dy(b, j), T(static_cast<double>(length))) : T(0);
      }
}

}  // namespace assay::reference
