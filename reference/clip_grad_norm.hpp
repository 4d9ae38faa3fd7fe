// Clipping of gradients by their global norm.
#pragma once

#include "core/forms.hpp"
#include "core/sum.hpp"
#include "core/view.hpp"

namespace assay::reference {

/// norm[0] = sqrt(sum_i g[i]^2) and g'[i] = g[i] min(1, max_norm / (norm + eps)); g [n] in place, norm [1]. min is
/// computed as the negated maximum of the negatives, which keeps a NaN norm. Source: Pascanu, Mikolov & Bengio, ICML
/// 2013, algorithm 1; eps as in torch.nn.utils.clip_grad_norm_.
template <class T>
void clip_grad_norm(View<T> g, View<T> norm, double max_norm, double eps) {
  Sum<T> squares;
  for (Index i = 0; i < g.dim(0); ++i) squares += g(i) * g(i);
  norm(0) = sqrt(squares.value());
  const auto given = [](double param) { return T(static_cast<double>(static_cast<float>(param))); };
  const T factor = -maximum(-quotient(given(max_norm), norm(0) + given(eps)), T(-1));
  for (Index i = 0; i < g.dim(0); ++i) g(i) = g(i) * factor;
}

}  // namespace assay::reference
