// dst = dst + alpha src.
#pragma once

#include "core/bounded.hpp"
#include "core/view.hpp"

namespace assay::reference {

/// dst[i,j] = dst[i,j] + alpha src[i,j] for disjoint dst, src [m, n]. O(m n).
/// Source: Lawson et al., ACM TOMS 5, 1979 (SAXPY).
template <class T>
void accumulate(View<T> dst, View<const T> src, double alpha) {
  for (Index i = 0; i < dst.dim(0); ++i)
    for (Index j = 0; j < dst.dim(1); ++j) dst(i, j) = dst(i, j) + T(alpha) * src(i, j);
}

}  // namespace assay::reference
