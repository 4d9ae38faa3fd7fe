// A matrix encoded in NF4.
#pragma once

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <limits>

#include "reference/nf4.hpp"

namespace assay::reference {

/// For x [n, k], in blocks of 64 elements of a row: absmax[j,b] = max |x[j,p]|, 0 if that is below 2^-120, NaN if an
/// element is not finite; q[j,p] = the number of midpoints m with x[j,p] > fl(m absmax), 7 if absmax is 0 or NaN. codes
/// [n, 32 b] hold two q per byte, the earlier one in the high bits, 7 after the row's end. O(n k).
/// Source: Dettmers et al., QLoRA, 2023, section 3, equation 1.
template <class T>
void nf4_quantize(View<const T> x, View<T> codes, View<T> absmax) {
  for (Index j = 0; j < absmax.dim(0); ++j)
    for (Index b = 0; b < absmax.dim(1); ++b) {
      float most = 0;
      for (Index p = b * kNf4Block; p < std::min(x.dim(1), (b + 1) * kNf4Block); ++p) {
        const float magnitude = std::fabs(value_of(x(j, p)));
        if (!(magnitude <= FLT_MAX)) most = std::numeric_limits<float>::quiet_NaN();
        else if (magnitude > most) most = magnitude;
      }
      const float scale = nf4_scale(most);
      absmax(j, b) = T(scale);
      const auto code = [&](Index p) {
        if (p >= x.dim(1) || !(scale > 0)) return int{kNf4Zero};
        int above = 0;
        for (const float midpoint : kNf4Midpoints)
          if (value_of(x(j, p)) > midpoint * scale) ++above;
        return above;
      };
      for (Index i = 0; i < kNf4Bytes; ++i) {
        const Index p = b * kNf4Block + 2 * i;
        codes(j, b * kNf4Bytes + i) = T(16.0 * code(p) + code(p + 1));
      }
    }
}

}  // namespace assay::reference
