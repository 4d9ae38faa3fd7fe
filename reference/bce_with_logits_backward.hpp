// Gradient of bce_with_logits with respect to its logits.
#pragma once

#include "core/forms.hpp"
#include "core/sum.hpp"
#include "core/view.hpp"

namespace assay::reference {

/// dlogits[i,j] = dloss[i] / classes ((1 - t) sigmoid(x) - pos_weight[j] t (1 - sigmoid(x))), x = logits[i,j] and
/// t = targets[i,j]; logits, targets, dlogits [rows, classes], pos_weight [classes], dloss [rows]. dlogits is
/// overwritten; null data: not wanted. Source: Bishop, Pattern Recognition and Machine Learning (2006), equation 4.91.
template <class T>
void bce_with_logits_backward(View<const T> logits, View<const T> targets, View<const T> pos_weight,
                              View<const T> dloss, View<T> dlogits) {
  if (dlogits.data() == nullptr) return;
  const Index classes = logits.dim(1);
  for (Index i = 0; i < logits.dim(0); ++i) {
    const T share = quotient(dloss(i), T(static_cast<double>(classes)));
    for (Index j = 0; j < classes; ++j) {
      const T x = logits(i, j), t = targets(i, j);
      Sum<T> slope;
      slope += (T(1) - t) * sigmoid(x);
      slope += -product(pos_weight(j), t, sigmoid_complement(x));
      dlogits(i, j) = slope.value() * share;
    }
  }
}

}  // namespace assay::reference
