// Gradient of cross_entropy with respect to its logits.
#pragma once

#include "core/forms.hpp"
#include "core/view.hpp"

namespace assay::reference {

/// dlogits[i,j] = weights[y] (exp(logits[i,j] - logsumexp[i]) - [j = y]) (dloss[i] + dtotal / normalizer), y =
/// targets[i]; logits, dlogits [rows, classes], targets, logsumexp, dloss [rows], weights [classes], normalizer, dtotal
/// [1]. Overwritten; nothing where dlogits has no memory. O(rows classes). Source: Bishop, Pattern Recognition and
/// Machine Learning (2006), equation 4.109.
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
      dlogits(i, j) = product(weights(y), j == y ? p - T(1) : p, upstream);
    }
  }
}

}  // namespace assay::reference
