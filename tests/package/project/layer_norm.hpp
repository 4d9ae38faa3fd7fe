// y = (x - mean(x)) / sqrt(var(x) + eps) · weight + bias: the bare equation. Assay runs it in double for the oracle, in
// `Bounded` for the largest error of any correct kernel, and in dual numbers for gradients.
#pragma once

#include "core/forms.hpp"
#include "core/sum.hpp"
#include "core/view.hpp"

namespace assay::reference {

/// Mean and 1 / sqrt(variance + eps) of row i of x [rows, n].
template <class T>
struct RowStatistics {
  T mean, rstd;

  RowStatistics(View<const T> x, Index i, double eps) {
    const Index n = x.dim(1);
    const T count(static_cast<double>(n));
    Sum<T> sum, squares;
    for (Index j = 0; j < n; ++j) sum += x(i, j);
    mean = quotient(sum.value(), count);
    for (Index j = 0; j < n; ++j) squares += T(x(i, j) - mean) * T(x(i, j) - mean);
    rstd = reciprocal_sqrt(T(quotient(squares.value(), count) + T(eps)));
  }
};

/// x [rows, n], weight [n], bias [n], y [rows, n]; y is overwritten.
template <class T>
void layer_norm(View<const T> x, View<const T> weight, View<const T> bias, View<T> y, double eps) {
  for (Index i = 0; i < x.dim(0); ++i) {
    const RowStatistics<T> row(x, i, eps);
    for (Index j = 0; j < x.dim(1); ++j) y(i, j) = product(T(x(i, j) - row.mean), row.rstd, weight(j)) + bias(j);
  }
}

/// With z = (x - m) rstd and a = dy weight: dx = rstd (a - mean(a) - z mean(a z)), dweight = sum of dy z and dbias =
/// sum of dy over the rows, all overwritten; a gradient with null data is skipped.
template <class T>
void layer_norm_backward(View<const T> x, View<const T> weight, View<const T> /*bias*/, View<const T> dy, View<T> dx,
                         View<T> dweight, View<T> dbias, double eps) {
  const Index rows = x.dim(0), n = x.dim(1);
  const T count(static_cast<double>(n));
  for (Index j = 0; j < n; ++j) {
    if (dweight.data() != nullptr) dweight(j) = T(0.0);
    if (dbias.data() != nullptr) dbias(j) = T(0.0);
  }
  for (Index i = 0; i < rows; ++i) {
    const RowStatistics<T> row(x, i, eps);
    const auto z = [&](Index j) { return T(T(x(i, j) - row.mean) * row.rstd); };
    const auto a = [&](Index j) { return T(dy(i, j) * weight(j)); };
    Sum<T> of_a, of_a_z;
    for (Index j = 0; j < n; ++j) {
      of_a += a(j);
      of_a_z += a(j) * z(j);
    }
    const T mean_a = quotient(of_a.value(), count), mean_a_z = quotient(of_a_z.value(), count);
    for (Index j = 0; j < n; ++j) {
      if (dx.data() != nullptr) dx(i, j) = row.rstd * T(T(a(j) - mean_a) - T(z(j) * mean_a_z));
      if (dweight.data() != nullptr) dweight(j) = dweight(j) + T(dy(i, j) * z(j));
      if (dbias.data() != nullptr) dbias(j) = dbias(j) + dy(i, j);
    }
  }
}

}  // namespace assay::reference
