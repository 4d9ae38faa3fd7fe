// The mean of the first tokens of each sequence.
#pragma once

#include "core/forms.hpp"
#include "core/sum.hpp"
#include "core/view.hpp"

namespace assay::reference {

/// y[b,j] = sum_(i < lengths[b]) x[b,i,j] / lengths[b] for x [b, s, h], lengths [b] from 1 to s, y [b, h]; y is
/// overwritten and shares nothing with x, lengths. O(b s h). Source: Reimers & Gurevych, EMNLP 2019, section 3.
template <class T>
void mean_pool(View<const T> x, View<const T> lengths, View<T> y) {
  for (Index b = 0; b < y.dim(0); ++b)
    for (Index j = 0; j < y.dim(1); ++j) {
      const Index length = whole(lengths(b));
      Sum<T> sum;
      for (Index i = 0; i < length; ++i) sum += x(b, i, j);
      y(b, j) = quotient(sum.value(), T(static_cast<double>(length)));
    }
}

}  // namespace assay::reference
