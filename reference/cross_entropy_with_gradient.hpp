// Weighted cross-entropy of logits against class indices, and the gradient of its total.
#pragma once

#include <vector>

#include "reference/cross_entropy.hpp"
#include "reference/orders.hpp"

namespace assay::reference {

/// loss, total and logsumexp as cross_entropy() forms them, and gradient[i,j] = weights[y] (exp(logits[i,j] -
/// logsumexp[i]) - [j = y]) / normalizer, y = targets[i], with cross_entropy's normalizer; logits, gradient [rows,
/// classes], targets, loss, logsumexp [rows], weights [classes], total [1]. O(rows classes). The bound of gradient also
/// holds for probabilities exp(logits[i,j] - m) / sum_k exp(logits[i,k] - m), and for the difference of two products.
/// Source: Bishop, Pattern Recognition and Machine Learning (2006), equation 4.109.
template <class T>
void cross_entropy_with_gradient(View<const T> logits, View<const T> targets, View<const T> weights, View<T> loss,
                                 View<T> total, View<T> logsumexp, View<T> gradient, double reduction) {
  std::vector<T> normalizer(1);
  cross_entropy<T>(logits, targets, weights, loss, total, logsumexp, View<T>(normalizer.data(), Shape{1}), reduction);
  const Index classes = logits.dim(1);
  const T share = quotient(T(1), normalizer[0]);
  for (Index i = 0; i < logits.dim(0); ++i) {
    T m = logits(i, 0);
    for (Index j = 1; j < classes; ++j) m = maximum(m, logits(i, j));
    const Rescalings<T> rescalings(classes, [&](Index j) { return logits(i, j); });
    Sum<T> sum;
    for (Index j = 0; j < classes; ++j) sum += softmax_term(logits(i, j), m, rescalings.of(logits(i, j)));
    const Index y = whole(targets(i));
    const auto weighed = [&](const T& x) { return reduction == 1 ? product(weights(y), x, share) : T(weights(y) * x); };
    for (Index j = 0; j < classes; ++j) {
      const T term = softmax_term(logits(i, j), m, rescalings.of(logits(i, j)));
      const T p = any_formula(exp(logits(i, j) - logsumexp(i)), quotient(term, sum.value()));
      gradient(i, j) = j == y ? any_order(weighed(p - T(1)), T(weighed(p) - weighed(T(1)))) : weighed(p);
    }
  }
}

/// dlogits = dtotal gradient, of the tensors that cross_entropy_with_gradient has; the others are not read.
template <class T>
void cross_entropy_with_gradient_backward(View<const T> /*logits*/, View<const T> /*targets*/,
                                          View<const T> /*weights*/, View<const T> /*loss*/,
                                          View<const T> /*logsumexp*/, View<const T> gradient, View<const T> dtotal,
                                          View<T> dlogits, double /*reduction*/) {
  if (dlogits.data() == nullptr) return;
  for (Index i = 0; i < gradient.dim(0); ++i)
    for (Index j = 0; j < gradient.dim(1); ++j) dlogits(i, j) = dtotal(0) * gradient(i, j);
}

}  // namespace assay::reference
