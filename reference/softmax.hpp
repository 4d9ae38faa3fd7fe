// Softmax of rows.
#pragma once

#include <cfloat>

#include "core/forms.hpp"
#include "core/sum.hpp"
#include "core/view.hpp"

namespace assay::reference {

/// y[i,j] = exp(x[i,j] - m) / sum_k exp(x[i,k] - m), m = max_k x[i,k], for x, y [rows, n]; y is overwritten and shares
/// nothing with x. A row of -inf only gives zeros: its shift and its sum are 0. O(rows n).
/// Source: Blanchard, Higham & Higham, IMA J. Numer. Anal. 41 (2021), equation 1.4.
template <class T>
void softmax(View<const T> x, View<T> y) {
  const Index n = x.dim(1);
  for (Index i = 0; i < x.dim(0); ++i) {
    T largest = x(i, 0);
    for (Index j = 1; j < n; ++j) largest = maximum(largest, x(i, j));
    const T shift = less(largest, T(-FLT_MAX)) ? T(0) : largest;
    const Rescalings<T> rescalings(n, [&](Index j) { return x(i, j); });
    Sum<T> sum;
    for (Index j = 0; j < n; ++j) sum += softmax_term(x(i, j), shift, rescalings.of(x(i, j)));
    const T total = sum.value();
    const bool nothing = less(total, T(0.5));  // the term of the maximum is 1
    for (Index j = 0; j < n; ++j)
      y(i, j) = nothing ? T(0) : quotient(softmax_term(x(i, j), shift, rescalings.of(x(i, j))), total);
  }
}

}  // namespace assay::reference
