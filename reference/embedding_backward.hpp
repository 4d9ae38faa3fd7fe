// The gradient of rows of a table by index.
#pragma once

#include "core/forms.hpp"
#include "core/sum.hpp"
#include "core/view.hpp"

namespace assay::reference {

/// dtable[v,j] = sum over t with ids[t] = v of dy[t,j], for ids [t] from 0 to v - 1, dy [t, h], dtable [v, h]; dtable
/// is overwritten; null data: not wanted. O(v t h). Source: the lookup is linear in the table; this is the transposed
/// map.
template <class T>
void embedding_backward(View<const T> ids, View<const T> dy, View<T> dtable) {
  if (dtable.data() == nullptr) return;
  for (Index v = 0; v < dtable.dim(0); ++v)
    for (Index j = 0; j < dtable.dim(1); ++j) {
      Sum<T> sum;
      for (Index t = 0; t < ids.dim(0); ++t)
        if (whole(ids(t)) == v) sum += dy(t, j);
      dtable(v, j) = sum.value();
    }
}

}  // namespace assay::reference
