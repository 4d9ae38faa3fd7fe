// Realistic ids of tokens: some repeated many times, with the first and the last of the vocabulary.
#pragma once

#include <vector>

#include "core/shape.hpp"
#include "falsify/engine/random.hpp"

namespace assay::falsify {

/// Makes half of the tokens equal, and some the ends of the vocabulary.
inline void make_repeated(std::vector<float>& ids, Index vocabulary, Random& random) {
  const Index common = random.between(0, vocabulary - 1);
  for (float& id : ids) {
    if (random.chance(0.5)) id = static_cast<float>(common);
    else if (random.chance(0.3)) id = static_cast<float>(random.chance(0.5) ? 0 : vocabulary - 1);
  }
}

}  // namespace assay::falsify
