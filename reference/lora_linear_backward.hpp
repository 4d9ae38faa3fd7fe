// Gradients of a linear layer with a low-rank adapter.
#pragma once

#include <vector>

#include "core/scaled_sum.hpp"
#include "core/view.hpp"
#include "reference/linear.hpp"

namespace assay::reference {

/// With g = dy · B: dx = dy · W + alpha / r g · A, dA = alpha / r gᵀ · x and dB = alpha / r dyᵀ · t for x [s, in],
/// weight [out, in], a [r, in], b [out, r], t = x · Aᵀ [s, r], dy [s, out], overwritten; a gradient with null data is
/// not wanted. O(s out (in + r)). Source: the product rule on y = x · Wᵀ + alpha / r (x · Aᵀ) · Bᵀ.
template <class T>
void lora_linear_backward(View<const T> x, View<const T> weight, View<const T> a, View<const T> b, View<const T> t,
                          View<const T> dy, View<T> dx, View<T> da, View<T> db, double alpha) {
  const Index s = dy.dim(0), in = weight.dim(1), out = weight.dim(0), r = a.dim(0);
  const T scale = T(alpha) / T(static_cast<double>(r));
  // g, and g scaled while it is summed.
  std::vector<T> later_values(static_cast<std::size_t>(s * r)), before_values = later_values;
  const View<T> g(later_values.data(), {s, r}), scaled_g(before_values.data(), {s, r});
  for (Index i = 0; i < s; ++i)
    for (Index q = 0; q < r; ++q) {
      Sum<T> sum;
      ScaledSum<T> scaled(scale);
      for (Index o = 0; o < out; ++o) sum += dy(i, o) * b(o, q), scaled.scaled(dy(i, o), b(o, q));
      g(i, q) = sum.value();
      scaled_g(i, q) = scaled.value();
    }
  if (dx.data() != nullptr)
    for (Index i = 0; i < s; ++i)
      for (Index p = 0; p < in; ++p) {
        ScaledSum<T> later(scale);
        Sum<T> before;
        for (Index o = 0; o < out; ++o) later += dy(i, o) * weight(o, p), before += dy(i, o) * weight(o, p);
        for (Index q = 0; q < r; ++q) later.scaled(g(i, q), a(q, p)), before += scaled_g(i, q) * a(q, p);
        dx(i, p) = any_sum_order(later.value(), before.value());
      }
  if (da.data() != nullptr)
    for (Index q = 0; q < r; ++q)
      for (Index p = 0; p < in; ++p) {
        ScaledSum<T> later(scale);
        Sum<T> before;
        for (Index i = 0; i < s; ++i) later.scaled(g(i, q), x(i, p)), before += scaled_g(i, q) * x(i, p);
        da(q, p) = any_sum_order(later.value(), before.value());
      }
  if (db.data() != nullptr)
    for (Index o = 0; o < out; ++o)
      for (Index q = 0; q < r; ++q) {
        ScaledSum<T> sum(scale);
        for (Index i = 0; i < s; ++i) sum.scaled(dy(i, o), t(i, q));
        db(o, q) = sum.value();
      }
}

/// Adds the gradients of the frozen layer: dweight[o,p] = sum_i dy[i,o] x[i,p] and dbias[0,o] = sum_i dy[i,o].
template <class T>
void lora_linear_backward(View<const T> x, View<const T> weight, View<const T> bias, View<const T> a, View<const T> b,
                          View<const T> t, View<const T> dy, View<T> dx, View<T> dweight, View<T> dbias, View<T> da,
                          View<T> db, double alpha) {
  lora_linear_backward<T>(x, weight, a, b, t, dy, dx, da, db, alpha);
  linear_backward<T>(x, weight, bias, dy, View<T>(), dweight, dbias);
}

}  // namespace assay::reference
