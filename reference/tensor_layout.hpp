// dst = src between two layouts, and its gradient.
#pragma once

#include "core/view.hpp"

namespace assay::reference {

/// dst[i,j] = src[i,j] for src and dst [m, n], each with its own non-overlapping strides: packs a padded matrix,
/// unpacks it, or turns a weight stored [out, in] into [in, out]. A copy, bit for bit; dst shares nothing with src, and
/// memory between dst's elements is unchanged. O(m n).
template <class T>
void tensor_layout(View<const T> src, View<T> dst) {
  for (Index i = 0; i < src.dim(0); ++i)
    for (Index j = 0; j < src.dim(1); ++j) dst(i, j) = src(i, j);
}

/// dsrc[i,j] = ddst[i,j], overwritten; null data: not wanted. The map is linear, so src is not used.
template <class T>
void tensor_layout_backward(View<const T> /*src*/, View<const T> ddst, View<T> dsrc) {
  if (dsrc.data() == nullptr) return;
  for (Index i = 0; i < dsrc.dim(0); ++i)
    for (Index j = 0; j < dsrc.dim(1); ++j) dsrc(i, j) = ddst(i, j);
}

}  // namespace assay::reference
