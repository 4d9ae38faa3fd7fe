// y = W · x for W in Q4_K super-blocks, and the gradient of x.
#pragma once

#include "core/sum.hpp"
#include "reference/q4_k_dequantize.hpp"

namespace assay::reference {

/// y[i] = sum_p w[i,p] x[p] for blocks [rows, ceil(k / 256) 144] of which w [rows, k] are the values, x [k], y [rows]; y
/// is overwritten and shares nothing with blocks, x. O(rows k).
template <class T>
void q4_k_gemv(View<const T> blocks, View<const T> x, View<T> y) {
  for (Index i = 0; i < y.dim(0); ++i) {
    Sum<T> sum;
    for (Index p = 0; p < x.dim(0); ++p) sum += T(q4_k_value(blocks, i, p)) * x(p);
    y(i) = sum.value();
  }
}

/// dx[p] = sum_i w[i,p] dy[i], overwritten; null data: not wanted. Source: y is linear in x.
template <class T>
void q4_k_gemv_backward(View<const T> blocks, View<const T> /*x*/, View<const T> dy, View<T> dx) {
  if (dx.data() == nullptr) return;
  for (Index p = 0; p < dx.dim(0); ++p) {
    Sum<T> sum;
    for (Index i = 0; i < dy.dim(0); ++i) sum += T(q4_k_value(blocks, i, p)) * dy(i);
    dx(p) = sum.value();
  }
}

}  // namespace assay::reference
