// Rows of a table by index.
#pragma once

#include "core/forms.hpp"
#include "core/view.hpp"

namespace assay::reference {

/// y[t,j] = table[ids[t],j] for ids [t] from 0 to v - 1, table [v, h], y [t, h]: a copy, bit for bit; y shares nothing
/// with ids, table. O(t h). Source: Bengio et al., JMLR 3, 2003, section 2.
template <class T>
void embedding(View<const T> ids, View<const T> table, View<T> y) {
  for (Index t = 0; t < y.dim(0); ++t)
    for (Index j = 0; j < y.dim(1); ++j) y(t, j) = table(whole(ids(t)), j);
}

}  // namespace assay::reference
