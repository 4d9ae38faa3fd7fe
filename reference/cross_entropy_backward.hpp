// Gradient of cross_entropy with respect to its logits.
#pragma once

#include "core/forms.hpp"
#include "core/view.hpp"
#include "reference/orders.hpp"

namespace assay::reference {

/// dlogits[i,j] = weights[y] (exp(logits[i,j] - logsumexp[i]) - [j = y]) (dloss[i] + dtotal / normalizer), y =
/// targets[i]; logits, dlogits [rows, classes], targets, logsumexp, dloss [rows], weights [classes], normalizer, dtotal
/// [1]. dlogits is overwritten; null data: not wanted. O(rows classes). Source: Bishop, Pattern Recognition and Machine
/// Learning (2006), equation 4.109. The bound of the target's own element also holds for the difference of two
/// products.
template <class T>
void cross_entropy_backward(View<const T> logits, View<const T> targets, View<const T> weights, View<const T> logsumexp,
                            View<const T> normalizer, View<const T> dloss, View<const T> dtotal, View<T> dlogits) {
  if (dlogits.data() == nullptr) return;
  const T share = quotient(dtotal(0), normalizer(0));
  for (Index i = 0; i < logits.dim(0); ++i) {
    const Index y = whole(targets(i));
    const T upstream = dloss(i) + share;
    for (Index j = 0; j < logits.dim(1); ++j) {
      const T p = exp(logits(i, j) - logsumexp(i));
      const T own = product(weights(y), p, upstream);
      dlogits(i, j) =
          j == y ? any_order(product(weights(y), p - T(1), upstream), T(own - T(weights(y) * upstream))) : own;
    }
  }
}

}  // namespace assay::reference
