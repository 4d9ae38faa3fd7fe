// A linear layer with a low-rank adapter.
#pragma once

#include "core/scaled_sum.hpp"
#include "core/view.hpp"

namespace assay::reference {

/// t[i,q] = sum_p x[i,p] a[q,p] and y[i,o] = sum_p x[i,p] weight[o,p] + bias[o] + alpha / r sum_q t[i,q] b[o,q] for x
/// [s, in], weight [out, in], bias [1, out] or, without a bias, [0, out], a [r, in], b [out, r]; y [s, out] and t
/// [s, r] are overwritten. O(s (in + r) out). Source: Hu et al., LoRA, ICLR 2022, section 4.1.
template <class T>
void lora_linear(View<const T> x, View<const T> weight, View<const T> bias, View<const T> a, View<const T> b, View<T> y,
                 View<T> t, double alpha) {
  const Index in = x.dim(1), r = a.dim(0);
  const T scale = T(alpha) / T(static_cast<double>(r));
  for (Index i = 0; i < x.dim(0); ++i) {
    for (Index q = 0; q < r; ++q) {
      Sum<T> sum;
      for (Index p = 0; p < in; ++p) sum += x(i, p) * a(q, p);
      t(i, q) = sum.value();
    }
    for (Index o = 0; o < weight.dim(0); ++o) {
      ScaledSum<T> sum(scale);
      for (Index p = 0; p < in; ++p) sum += x(i, p) * weight(o, p);
      if (bias.dim(0) > 0) sum += bias(0, o);
      for (Index q = 0; q < r; ++q) sum.scaled(t(i, q), b(o, q));
      y(i, o) = sum.value();
    }
  }
}

}  // namespace assay::reference
