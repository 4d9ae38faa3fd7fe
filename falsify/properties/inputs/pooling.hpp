// Lengths of sequences, and their padding.
#pragma once

#include <algorithm>
#include <bit>
#include <vector>

#include "core/shape.hpp"
#include "falsify/engine/random.hpp"

namespace assay::falsify {

/// Rounds lengths down to powers of two: a mean over a power of two is exact if the sum is.
inline void make_powers_of_two(std::vector<float>& lengths) {
  for (float& length : lengths) length = static_cast<float>(std::bit_floor(static_cast<unsigned>(length)));
}

/// Sets some lengths to 1, s or s - 1.
inline void make_extreme(std::vector<float>& lengths, Index s, Random& random) {
  for (float& length : lengths)
    if (random.chance(0.6))
      length = static_cast<float>(random.chance(0.4) ? 1 : std::max<Index>(1, s - random.between(0, 1)));
}

/// Calls f(element) for the padding of x [b, s, h].
template <class F>
void for_padding(std::vector<float>& x, const std::vector<float>& lengths, Index s, Index h, F f) {
  for (std::size_t b = 0; b < lengths.size(); ++b)
    for (Index i = static_cast<Index>(lengths[b]); i < s; ++i)
      for (Index j = 0; j < h; ++j) f(x[static_cast<std::size_t>((static_cast<Index>(b) * s + i) * h + j)]);
}

}  // namespace assay::falsify
