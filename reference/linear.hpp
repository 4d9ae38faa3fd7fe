// y = x · Wᵀ + bias and its gradients.
#pragma once

#include "core/sum.hpp"
#include "core/view.hpp"

namespace assay::reference {

/// y[i,o] = sum_p x[i,p] weight[o,p] + bias[o] for x [s, in], weight [out, in], bias [1, out], or [0, out] without a
/// bias, y [s, out]; y is overwritten. O(s in out). Source: Goodfellow, Bengio & Courville, Deep Learning
/// (2016), 6.1.
template <class T>
void linear(View<const T> x, View<const T> weight, View<const T> bias, View<T> y) {
  for (Index i = 0; i < y.dim(0); ++i)
    for (Index o = 0; o < y.dim(1); ++o) {
      Sum<T> sum;
      for (Index p = 0; p < x.dim(1); ++p) sum += x(i, p) * weight(o, p);
      if (bias.dim(0) > 0) sum += bias(0, o);
      y(i, o) = sum.value();
    }
}

/// dx[i,p] = sum_o dy[i,o] weight[o,p], dweight[o,p] = sum_i dy[i,o] x[i,p] and dbias[o] = sum_i dy[i,o], overwritten;
/// a gradient with null data is not wanted. Source: y is linear in each; these are the transposed maps.
template <class T>
void linear_backward(View<const T> x, View<const T> weight, View<const T> bias, View<const T> dy, View<T> dx,
                     View<T> dweight, View<T> dbias) {
  const Index s = x.dim(0), in = x.dim(1), out = weight.dim(0);
  if (dx.data() != nullptr)
    for (Index i = 0; i < s; ++i)
      for (Index p = 0; p < in; ++p) {
        Sum<T> sum;
        for (Index o = 0; o < out; ++o) sum += dy(i, o) * weight(o, p);
        dx(i, p) = sum.value();
      }
  if (dweight.data() != nullptr)
    for (Index o = 0; o < out; ++o)
      for (Index p = 0; p < in; ++p) {
        Sum<T> sum;
        for (Index i = 0; i < s; ++i) sum += dy(i, o) * x(i, p);
        dweight(o, p) = sum.value();
      }
  if (dbias.data() != nullptr)
    for (Index b = 0; b < bias.dim(0); ++b)
      for (Index o = 0; o < out; ++o) {
        Sum<T> sum;
        for (Index i = 0; i < s; ++i) sum += dy(i, o);
        dbias(b, o) = sum.value();
      }
}

}  // namespace assay::reference
