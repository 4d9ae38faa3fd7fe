// Arguments at which a sigmoid is most sensitive, for silu_mul and its gradient.
#pragma once

#include <vector>

#include "falsify/engine/random.hpp"

namespace assay::falsify {

/// Draws |x| <= 1, where the activation is neither 0 nor x; values around -88, where exp(-x) overflows; around -104,
/// where exp(x) vanishes; and about 17, where sigmoid(x) rounds to 1.
inline void draw_gates(std::vector<float>& gates, Random& random) {
  for (float& x : gates) {
    const double u = 2 * random.uniform() - 1;
    switch (random.below(6)) {
      case 0: x = static_cast<float>(-88.5 + u); break;
      case 1: x = static_cast<float>(-103.5 + u); break;
      case 2: x = static_cast<float>(17 * u); break;
      default: x = static_cast<float>(u);
    }
  }
}

}  // namespace assay::falsify
