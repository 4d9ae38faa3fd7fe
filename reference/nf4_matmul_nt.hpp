// Y = X · Wᵀ with W in NF4 codes, and its gradient.
#pragma once

#include "core/sum.hpp"
#include "reference/nf4.hpp"

namespace assay::reference {

/// y[i,j] = sum_p x[i,p] w[j,p] for x [m, k], y [m, n] and w [n, k] in codes [n, 32 b] and absmax [n, b], b = ceil(k /
/// 64); y is overwritten and shares nothing with the inputs. O(m n k). Source: Dettmers et al., QLoRA, 2023, section 3,
/// equation 5.
template <class T>
void nf4_matmul_nt(View<const T> x, View<const T> codes, View<const T> absmax, View<T> y) {
  for (Index j = 0; j < y.dim(1); ++j)
    for (Index i = 0; i < y.dim(0); ++i)
      y(i, j) = nf4_dot(codes, absmax, j, x.dim(1), [&](Index p) { return x(i, p); });
}

/// dx[i,p] = sum_j dy[i,j] w[j,p], overwritten; null data: not wanted. Source: y is linear in x; this is the transposed
/// map.
template <class T>
void nf4_matmul_nt_backward(View<const T> /*x*/, View<const T> codes, View<const T> absmax, View<const T> dy,
                            View<T> dx) {
  if (dx.data() == nullptr) return;
  for (Index i = 0; i < dx.dim(0); ++i)
    for (Index p = 0; p < dx.dim(1); ++p) {
      Sum<T> sum;
      for (Index j = 0; j < dy.dim(1); ++j) sum += dy(i, j) * nf4_weight(codes, absmax, j, p);
      dx(i, p) = sum.value();
    }
}

}  // namespace assay::reference
