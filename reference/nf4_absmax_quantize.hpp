// The scales of NF4 blocks in codes of 8 bits.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/nf4_absmax.hpp"
#include "reference/nf4.hpp"

namespace assay::reference {

/// The sum of consecutive groups of 256 terms, then of those sums in groups of 256, until one is left. Within a group,
/// filled up with zeros, term i takes term i + 128, then i + 64, ..., i + 1: a tree, each sum rounded to float.
inline float nf4_absmax_sum(std::vector<float> terms) {
  while (terms.size() > 1) {
    std::vector<float> sums;
    for (std::size_t first = 0; first < terms.size(); first += kAbsmaxGroup) {
      std::vector<float> group(kAbsmaxGroup);
      std::copy_n(terms.begin() + static_cast<std::ptrdiff_t>(first), std::min(terms.size() - first, group.size()),
                  group.begin());
      for (std::size_t width = group.size() / 2; width > 0; width /= 2)
        for (std::size_t i = 0; i < width; ++i) group[i] = group[i] + group[i + width];
      sums.push_back(group[0]);
    }
    terms.swap(sums);
  }
  return terms.empty() ? 0.0F : terms[0];
}

/// For absmax [n, b], N = n b values a[i] counted row by row: offset[0] = their mean, as fl(sum fl(1/N)); for every
/// group g of 256, absmax2[g] = max |fl(a[i] - offset)|, and codes[i] = how many midpoints m of the codebook have
/// fl(a[i] - offset) > fl(m absmax2[g]). Code 127 where absmax2 is 0 or NaN, and behind the last value. An a below
/// 2^-120 counts as 0, an absmax2 below 2^-100 is 0; a NaN, an infinity or a negative a makes offset and absmax2 NaN.
/// codes [256 groups], absmax2 [groups], offset [1]. O(N). Source: Dettmers et al., QLoRA, 2023, section 3 (double
/// quantization).
template <class T>
void nf4_absmax_quantize(View<const T> absmax, View<T> codes, View<T> absmax2, View<T> offset) {
  std::vector<float> values;
  for (Index j = 0; j < absmax.dim(0); ++j)
    for (Index b = 0; b < absmax.dim(1); ++b) values.push_back(absmax_value(held(absmax(j, b))));
  const auto count = static_cast<Index>(values.size());
  const float mean = count == 0 ? 0.0F : absmax_offset(nf4_absmax_sum(values), absmax_reciprocal(count));
  offset(0) = T(mean);
  for (Index g = 0; g < absmax2.dim(0); ++g) {
    const auto difference = [&](Index i) { return values[static_cast<std::size_t>(i)] - mean; };
    const Index first = g * kAbsmaxGroup, end = std::min(count, first + kAbsmaxGroup);
    float most = 0;
    for (Index i = first; i < end; ++i)
      if (!(std::fabs(difference(i)) <= most)) most = std::fabs(difference(i));
    const float scale = absmax_scale(most);
    absmax2(g) = T(scale);
    for (Index i = first; i < first + kAbsmaxGroup; ++i) {
      int above = 0;
      if (i < end && scale > 0)
        for (const float midpoint : kAbsmaxMidpoints)
          if (difference(i) > midpoint * scale) ++above;
      codes(i) = T(static_cast<double>(i < end && scale > 0 ? above : int{kAbsmaxZero}));
    }
  }
}

}  // namespace assay::reference
