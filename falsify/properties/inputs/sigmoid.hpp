// Arguments at which x sigmoid(x) and its slope are most sensitive.
#pragma once

#include <cmath>
#include <vector>

#include "falsify/engine/random.hpp"

namespace assay::falsify {

/// Draws arguments of order 1, where the constants of the formula matter; around -1.278, where the slope vanishes; at
/// the end of exp's range, where sigmoid becomes subnormal and exp(-x) overflows; and far beyond it.
inline void sensitive_arguments(std::vector<float>& x, Random& random) {
  for (float& v : x) {
    switch (random.below(5)) {
      case 0: v = static_cast<float>(random.gaussian()); break;
      case 1: v = static_cast<float>(-1.2784645 + 0.01 * random.gaussian()); break;
      case 2: v = static_cast<float>(random.either_sign(80 + 30 * random.uniform())); break;
      case 3: v = static_cast<float>(random.either_sign(40 * random.uniform())); break;
      case 4: v = static_cast<float>(random.either_sign(random.by_magnitude(-60, 120))); break;
    }
  }
}

}  // namespace assay::falsify
