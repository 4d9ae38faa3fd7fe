// Y = X · Wᵀ for W in Q4_K super-blocks, and the gradient of X.
#pragma once

#include "reference/q4_k_gemv.hpp"

namespace assay::reference {

/// y[i,j] = sum_p x[i,p] w[j,p] for w [n, k] decoded from blocks [n, ceil(k / 256) 144], x [m, k], y [m, n]; y is
/// overwritten and shares nothing with x, blocks. Each row of y is q4_k_gemv of its row of x, in any of its forms.
/// O(m n k).
template <class T>
void q4_k_matmul_nt(View<const T> x, View<const T> blocks, View<T> y) {
  for (Index i = 0; i < y.dim(0); ++i)
    q4_k_gemv<T>(blocks, {x.data() + i * x.stride(0), {x.dim(1)}, {x.stride(1)}},
                 {y.data() + i * y.stride(0), {y.dim(1)}, {y.stride(1)}});
}

/// dx[i,p] = sum_j w[j,p] dy[i,j], overwritten; null data: not wanted. Source: y is linear in x.
template <class T>
void q4_k_matmul_nt_backward(View<const T> /*x*/, View<const T> blocks, View<const T> dy, View<T> dx) {
  if (dx.data() == nullptr) return;
  for (Index i = 0; i < dx.dim(0); ++i)
    for (Index p = 0; p < dx.dim(1); ++p) {
      Sum<T> sum;
      for (Index j = 0; j < dy.dim(1); ++j) sum += T(q4_k_value(blocks, j, p)) * dy(i, j);
      dx(i, p) = sum.value();
    }
}

}  // namespace assay::reference
