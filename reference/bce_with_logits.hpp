// Binary cross-entropy of logits.
#pragma once

#include "core/any_formula.hpp"
#include "core/forms.hpp"
#include "core/sum.hpp"
#include "core/view.hpp"

namespace assay::reference {

/// loss[i] = sum_j (pos_weight[j] t softplus(-x) + (1 - t) softplus(x)) / classes with x = logits[i,j], t =
/// targets[i,j] and softplus(z) = max(z, 0) + log1p(exp(-|z|)); logits, targets [rows, classes], pos_weight [classes],
/// loss [rows]. Source: Goodfellow, Bengio & Courville, Deep Learning (2016), section 6.2.2.2.
template <class T>
void bce_with_logits(View<const T> logits, View<const T> targets, View<const T> pos_weight, View<T> loss) {
  const Index classes = logits.dim(1);
  for (Index i = 0; i < logits.dim(0); ++i) {
    Sum<T> sum, cancelling, of_exponentials;
    for (Index j = 0; j < classes; ++j) {
      const T x = logits(i, j), t = targets(i, j);
      const T beside = log1p(exp(-absolute(x)));
      sum += product(pos_weight(j), t, maximum(-x, T(0)) + beside);
      sum += (T(1) - t) * (maximum(x, T(0)) + beside);
      if (!lost<T>(Loss::stable)) continue;
      cancelling += (T(1) - t) * x;
      const T weight = T(T((pos_weight(j) - T(1)) * t) + T(1)), most = maximum(-x, T(0));
      cancelling += weight * (most + beside);
      of_exponentials += (T(1) - t) * x;  // as PyTorch before 1.12 computes it
      of_exponentials += weight * (log(exp(-most) + exp(-x - most)) + most);
    }
    const T losses = lost<T>(Loss::stable)
                         ? any_formula(any_formula(sum.value(), cancelling.value()), of_exponentials.value())
                         : sum.value();
    loss(i) = quotient(losses, T(static_cast<double>(classes)));
  }
}

}  // namespace assay::reference
