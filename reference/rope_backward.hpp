// Gradient of rope: the inverse rotation, since rotations are orthogonal.
#pragma once

#include "reference/rope.hpp"

namespace assay::reference {

/// dx is dy rotated by the opposite angles; dx is overwritten and shares nothing with dy; null data: not wanted. O(rows
/// heads d).
template <class T>
void rope_backward(View<const T> dy, View<T> dx, double theta, double interleaved, double float32_angle, double position) {
  if (dx.data() == nullptr) return;
  rotate_pairs<T>(dy, dx, theta, interleaved, float32_angle, position, -1);
}

}  // namespace assay::reference
