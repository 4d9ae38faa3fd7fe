// Rotary position embedding and its gradient: rotations are orthogonal, so it is the rotation back.
#pragma once

#include <vector>

#include "core/forms.hpp"
#include "core/rope.hpp"
#include "core/rope_rotation.hpp"
#include "core/view.hpp"

namespace assay::reference {

/// Returns the angle of pair i at a position: position theta^(-2i/d), or for float32 angles the float nearest to the
/// product of the position and the float nearest to the power.
inline Digits50 rope_angle(double position, double theta, Index i, Index d, bool float32_angle) {
  thread_local struct {
    double theta = 0;
    Index d = 0;
    std::vector<Digits50> powers;
  } kept;
  if (kept.theta != theta || kept.d != d) {
    kept = {theta, d, {}};
    for (Index k = 0; k < d / 2; ++k) kept.powers.push_back(pow(Digits50(theta), Digits50(-2 * k) / d));
  }
  const Digits50& frequency = kept.powers[static_cast<std::size_t>(i)];
  if (!float32_angle) return Digits50(position) * frequency;
  return Digits50(static_cast<float>(position) * static_cast<float>(frequency));
}

/// Rotates every pair of every head by its angle at the row's position, or by the opposite angle if `direction` is -1:
/// y1 = x1 cos - x2 sin, y2 = x2 cos + x1 sin for x, y [rows, heads, d], positions [rows]. Pairs are (2i, 2i+1) or
/// (i, i + d/2).
template <class T>
void rotate_pairs(View<const T> x, View<const T> positions, View<T> y, double theta, double interleaved,
                  double float32_angle, double direction) {
  const Index d = x.dim(2);
  for (Index row = 0; row < x.dim(0); ++row)
    for (Index i = 0; i < d / 2; ++i) {
      const auto position = static_cast<double>(whole(positions(row)));
      const Digits50 angle = rope_angle(position, theta, i, d, float32_angle != 0);
      const double error = std::is_same_v<T, Bounded> ? rope_error(position, theta, i, d, float32_angle != 0) : 0;
      const Rotation<T> r = rotation<T>(Digits50(direction) * angle, error);
      const Index first = interleaved != 0 ? 2 * i : i, second = interleaved != 0 ? 2 * i + 1 : i + d / 2;
      for (Index head = 0; head < x.dim(1); ++head) {
        const T x1 = x(row, head, first), x2 = x(row, head, second);
        y(row, head, first) = T(x1 * r.cos) - T(x2 * r.sin);
        y(row, head, second) = T(x2 * r.cos) + T(x1 * r.sin);
      }
    }
}

/// y is x, each row rotated by its position; y is overwritten and shares nothing with x. O(rows heads d).
/// Source: Su et al., RoFormer, arXiv:2104.09864, equation 34.
template <class T>
void rope(View<const T> x, View<const T> positions, View<T> y, double theta, double interleaved, double float32_angle) {
  rotate_pairs<T>(x, positions, y, theta, interleaved, float32_angle, 1);
}

/// dx is dy rotated by minus its angles; overwritten, shares nothing with dy; null data: not wanted. O(rows heads d).
template <class T>
void rope_backward(View<const T> dy, View<const T> positions, View<T> dx, double theta, double interleaved,
                   double float32_angle) {
  if (dx.data() == nullptr) return;
  rotate_pairs<T>(dy, positions, dx, theta, interleaved, float32_angle, -1);
}

}  // namespace assay::reference
