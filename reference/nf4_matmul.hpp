// DX = DY · W with W in NF4 codes, and its gradient.
#pragma once

#include "core/sum.hpp"
#include "reference/nf4.hpp"

namespace assay::reference {

/// dx[i,p] = sum_j dy[i,j] w[j,p] for dy [m, n], dx [m, k] and w [n, k] in codes [n, 32 b] and absmax [n, b], b =
/// ceil(k / 64); dx is overwritten and shares nothing with the inputs. Kernels may also scale dy first. O(m n k).
/// Source: Dettmers et al., QLoRA, 2023, section 3.
template <class T>
void nf4_matmul(View<const T> dy, View<const T> codes, View<const T> absmax, View<T> dx) {
  for (Index p = 0; p < dx.dim(1); ++p)
    for (Index i = 0; i < dx.dim(0); ++i) {
      Sum<T> sum, scaled;
      for (Index j = 0; j < dy.dim(1); ++j) {
        sum += dy(i, j) * nf4_weight(codes, absmax, j, p);
        scaled += product(nf4_block_scale(absmax, j, p), AsInput<T>::value(nf4_entry(codes, j, p)), dy(i, j));
      }
      dx(i, p) = any_formula(sum.value(), scaled.value());
    }
}

/// ddy[i,j] = sum_p ddx[i,p] w[j,p], overwritten; null data: not wanted. Source: dx is linear in dy; the transposed
/// map.
template <class T>
void nf4_matmul_backward(View<const T> /*dy*/, View<const T> codes, View<const T> absmax, View<const T> ddx,
                         View<T> ddy) {
  if (ddy.data() == nullptr) return;
  for (Index i = 0; i < ddy.dim(0); ++i)
    for (Index j = 0; j < ddy.dim(1); ++j)
      ddy(i, j) = nf4_dot(codes, absmax, j, ddx.dim(1), [&](Index p) { return ddx(i, p); });
}

}  // namespace assay::reference
