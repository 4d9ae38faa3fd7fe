// Gradients of rmsnorm from x and eps alone.
#pragma once

#include <vector>

#include "reference/rmsnorm_backward.hpp"

namespace assay::reference {

/// With a = dy * weight and rrms[i] = 1 / sqrt(sum_j x[i,j]² / n + eps): dx[i,j] = rrms[i] (a[i,j] - x[i,j] rrms[i]²
/// sum_k a[i,k] x[i,k] / n) and dweight[j] = sum_i dy[i,j] x[i,j] rrms[i] for x, dy, dx [rows, n], weight, dweight [n];
/// overwritten. O(rows n). The bound of dx also holds for a sum of a x over n eps + sum_j x[i,j]² in place of rrms² / n.
/// Source: Zhang & Sennrich, NeurIPS 2019, section 4.2, with eps inside the root.
template <class T>
void rmsnorm_eps_backward(View<const T> x, View<const T> weight, View<const T> dy, View<T> dx, View<T> dweight,
                          double eps) {
  const Index rows = x.dim(0), n = x.dim(1);
  const T width(static_cast<double>(n));
  std::vector<T> rrms, share;
  for (Index i = 0; i < rows; ++i) {
    Sum<T> squares, along;
    for (Index j = 0; j < n; ++j) {
      squares += x(i, j) * x(i, j);
      along += product(dy(i, j), weight(j), x(i, j));
    }
    rrms.push_back(reciprocal_sqrt(T(quotient(squares.value(), width) + T(eps))));
    share.push_back(quotient(along.value(), T(squares.value() + T(width * T(eps)))));
  }
  rmsnorm_backward<T>(x, weight, View<const T>(rrms.data(), Shape{rows}), dy, dx, dweight);
  for (Index i = 0; i < rows; ++i)
    for (Index j = 0; j < n; ++j) {
      const auto at = static_cast<std::size_t>(i);
      dx(i, j) = any_order(dx(i, j), scaled_difference(rrms[at], T(dy(i, j) * weight(j)), T(x(i, j) * share[at])));
    }
}

}  // namespace assay::reference
