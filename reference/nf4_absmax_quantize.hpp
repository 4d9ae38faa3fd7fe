// NF4 block scales encoded in 8-bit codes.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/nf4_absmax.hpp"
#include "reference/nf4.hpp"

namespace assay::reference {

/// Sums consecutive groups of 256 terms, then these sums in groups of 256, until one is left. Within a group, padded
/// with zeros, term i + 128 is added to term i, then i + 64, ..., i + 1: a tree, each sum rounded to float.
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

/// For absmax [n, b], N = n b values a[i] in row-major order: offset[0] = their mean, as fl(sum fl(1/N)); for every
/// group g of 256, absmax2[g] = max |fl(a[i] - offset)|, and codes[i] = the number of midpoints m of the codebook with
/// fl(a[i] - offset) > fl(m absmax2[g]). The code is 127 if absmax2 is 0 or NaN, and after the last value. An a below
/// 2^-120 counts as 0, an absmax2 below 2^-100 is 0; a NaN, an infinity or a negative a makes offset and absmax2 NaN.
/// codes [256 groups], absmax2 [groups], offset [1]. O(N). Source: Dettmers et al., QLoRA, 2023, section 3 (double
/// quantization).
template <class T>
void nf4_absmax_quantize(View<const T> absmax, View<T> codes, View<T> absmax2, View<T> offset) {
  std::vector<float> values;
  for (Index j = 0; j < absmax.dim(0); ++j)
    for (Index b = 0; b < absmax.dim(1); ++b) values.push_back(absmax_value(value_of(absmax(j, b))));
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
