// One value everywhere.
#pragma once

#include "core/bounded.hpp"
#include "core/view.hpp"

namespace assay::reference {

/// y[i,j] = value for y [m, n], overwritten. O(m n). Source: ISO C++ draft N4950, 27.7.6 (std::fill).
template <class T>
void fill(View<T> y, double value) {
  for (Index i = 0; i < y.dim(0); ++i)
    for (Index j = 0; j < y.dim(1); ++j) y(i, j) = T(value);
}

}  // namespace assay::reference
