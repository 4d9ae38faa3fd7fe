// Weighted cross-entropy of logits against class indices.
#pragma once

#include "core/any_formula.hpp"
#include "core/forms.hpp"
#include "core/sum.hpp"
#include "core/view.hpp"

namespace assay::reference {

/// loss[i] = weights[y] ((m - logits[i,y]) + log sum_j exp(logits[i,j] - m)) with m the row's maximum and y =
/// targets[i]; logits [rows, classes], targets [rows], weights [classes], loss [rows]. total [1] is sum_i loss[i] over
/// normalizer [1], which is sum_i weights[targets[i]] for reduction 1 (mean) and 1 for reduction 2 (sum). logsumexp
/// [rows] and normalizer are kept for the backward pass. O(rows classes). Source: Blanchard, Higham & Higham, IMA J.
/// Numer. Anal. 41 (2021), algorithm 3.1 (shifted log-sum-exp).
template <class T>
void cross_entropy(View<const T> logits, View<const T> targets, View<const T> weights, View<T> loss, View<T> total,
                   View<T> logsumexp, View<T> normalizer, double reduction) {
  const Index classes = logits.dim(1);
  Sum<T> losses, weight;
  for (Index i = 0; i < logits.dim(0); ++i) {
    T m = logits(i, 0);
    for (Index j = 1; j < classes; ++j) m = maximum(m, logits(i, j));
    const Rescalings<T> rescalings(classes, [&](Index j) { return logits(i, j); });
    Sum<T> sum;
    for (Index j = 0; j < classes; ++j) sum += softmax_term(logits(i, j), m, rescalings.of(logits(i, j)));
    const T log_sum = log(sum.value());
    const Index y = whole(targets(i));
    logsumexp(i) = m + log_sum;
    T over = (m - logits(i, y)) + log_sum;
    if (lost<T>(Loss::confident)) over = any_formula(over, T(logsumexp(i) - logits(i, y)));
    loss(i) = weights(y) * over;
    losses += loss(i);
    weight += weights(y);
  }
  const bool mean = reduction == 1;
  normalizer(0) = mean ? weight.value() : T(1);
  total(0) = mean ? quotient(losses.value(), weight.value()) : losses.value();
}

}  // namespace assay::reference
