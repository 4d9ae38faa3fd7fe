// The adapter added to the weight.
#pragma once

#include "core/scaled_sum.hpp"
#include "core/view.hpp"

namespace assay::reference {

/// merged[o,p] = weight[o,p] + alpha / r sum_q b[o,q] a[q,p] for weight, merged [out, in], a [r, in], b [out, r];
/// merged is overwritten. O(out in r). Source: Hu et al., LoRA, ICLR 2022, section 4.1.
template <class T>
void lora_merge(View<const T> weight, View<const T> a, View<const T> b, View<T> merged, double alpha) {
  const Index r = a.dim(0);
  const T scale = T(alpha) / T(static_cast<double>(r));
  for (Index o = 0; o < merged.dim(0); ++o)
    for (Index p = 0; p < merged.dim(1); ++p) {
      ScaledSum<T> sum(scale);
      sum += weight(o, p);
      for (Index q = 0; q < r; ++q) sum.scaled(b(o, q), a(q, p));
      merged(o, p) = sum.value();
    }
}

}  // namespace assay::reference
