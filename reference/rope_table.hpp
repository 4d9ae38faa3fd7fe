// Rotary position embedding by given cosines and sines, and its gradient: the transpose of each pair's matrix.
#pragma once

#include "core/forms.hpp"
#include "core/view.hpp"

namespace assay::reference {

/// y1 = x1 c - x2 s, y2 = x2 c + x1 s for every pair of x, y [rows, heads, d], with c and s of the pair and of the
/// row's position in cosines and sines [places, d/2]; `back`: s is negated. Pairs are (2i, 2i+1) or (i, i + d/2).
template <class T>
void rotate_by_table(View<const T> x, View<const T> cosines, View<const T> sines, View<const T> positions, View<T> y,
                     double interleaved, bool back) {
  const Index d = x.dim(2);
  for (Index row = 0; row < x.dim(0); ++row)
    for (Index i = 0; i < d / 2; ++i) {
      const Index place = whole(positions(row));
      const T c = cosines(place, i), s = back ? T(-sines(place, i)) : sines(place, i);
      const Index first = interleaved != 0 ? 2 * i : i, second = interleaved != 0 ? 2 * i + 1 : i + d / 2;
      for (Index head = 0; head < x.dim(1); ++head) {
        const T x1 = x(row, head, first), x2 = x(row, head, second);
        y(row, head, first) = T(x1 * c) - T(x2 * s);
        y(row, head, second) = T(x2 * c) + T(x1 * s);
      }
    }
}

/// y is x, each row rotated by the tables' row for its position; y is overwritten and shares nothing with the inputs.
/// O(rows heads d). Source: Su et al., RoFormer, arXiv:2104.09864, equation 34.
template <class T>
void rope_table(View<const T> x, View<const T> cosines, View<const T> sines, View<const T> positions, View<T> y,
                double interleaved) {
  rotate_by_table<T>(x, cosines, sines, positions, y, interleaved, false);
}

/// dx1 = dy1 c + dy2 s, dx2 = dy2 c - dy1 s; overwritten, shares nothing with the inputs; null data: not wanted.
/// O(rows heads d).
template <class T>
void rope_table_backward(View<const T> cosines, View<const T> sines, View<const T> positions, View<const T> dy,
                         View<T> dx, double interleaved) {
  if (dx.data() == nullptr) return;
  rotate_by_table<T>(dy, cosines, sines, positions, dx, interleaved, true);
}

}  // namespace assay::reference
