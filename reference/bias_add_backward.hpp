// The gradients of y = x + bias.
#pragma once

#include "core/sum.hpp"
#include "core/view.hpp"

namespace assay::reference {

/// dx[i,j] = dy[i,j] and dbias[j] = sum_i dy[i,j] for dy, dx [m, n], dbias [n], overwritten; null data: not wanted. O(m
/// n). Source: Goodfellow, Bengio & Courville, Deep Learning, 2016, section 6.5.
template <class T>
void bias_add_backward(View<const T> dy, View<T> dx, View<T> dbias) {
  if (dx.data() != nullptr)
    for (Index i = 0; i < dy.dim(0); ++i)
      for (Index j = 0; j < dy.dim(1); ++j) dx(i, j) = dy(i, j);
  if (dbias.data() != nullptr)
    for (Index j = 0; j < dy.dim(1); ++j) {
      Sum<T> sum;
      for (Index i = 0; i < dy.dim(0); ++i) sum += dy(i, j);
      dbias(j) = sum.value();
    }
}

}  // namespace assay::reference
