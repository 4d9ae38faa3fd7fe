// The adapter subtracted from the weight.
#pragma once

#include "core/scaled_sum.hpp"
#include "core/view.hpp"

namespace assay::reference {

/// weight[o,p] = merged[o,p] - alpha / r sum_q b[o,q] a[q,p] for merged, weight [out, in], a [r, in], b [out, r];
/// weight is overwritten. O(out in r). Source: Hu et al., LoRA, ICLR 2022, section 4.1.
template <class T>
void lora_unmerge(View<const T> merged, View<const T> a, View<const T> b, View<T> weight, double alpha) {
  const Index r = a.dim(0);
  const T scale = T(alpha) / T(static_cast<double>(r));
  for (Index o = 0; o < weight.dim(0); ++o)
    for (Index p = 0; p < weight.dim(1); ++p) {
      ScaledSum<T> sum(-scale);
      sum += merged(o, p);
      for (Index q = 0; q < r; ++q) sum.scaled(b(o, q), a(q, p));
      weight(o, p) = sum.value();
    }
}

}  // namespace assay::reference
