// y = x / sqrt(mean(x²) + eps) · weight.
#pragma once

#include "core/forms.hpp"
#include "core/sum.hpp"
#include "core/view.hpp"

namespace assay::reference {

/// rrms[i] = 1 / sqrt(sum_j x[i,j]² / n + eps), y[i,j] = x[i,j] rrms[i] weight[j] for x, y [rows, n], weight [n], rrms
/// [rows]; y and rrms are overwritten and share nothing with x and weight. O(rows n).
/// Source: Zhang & Sennrich, NeurIPS 2019, equation 4, with eps inside the root.
template <class T>
void rmsnorm(View<const T> x, View<const T> weight, View<T> y, View<T> rrms, double eps) {
  const Index n = x.dim(1);
  for (Index i = 0; i < x.dim(0); ++i) {
    Sum<T> squares;
    for (Index j = 0; j < n; ++j) squares += x(i, j) * x(i, j);
    const T mean_square = quotient(squares.value(), T(static_cast<double>(n)));
    rrms(i) = reciprocal_sqrt(T(mean_square + T(eps)));
    for (Index j = 0; j < n; ++j) y(i, j) = product(x(i, j), rrms(i), weight(j));
  }
}

}  // namespace assay::reference
