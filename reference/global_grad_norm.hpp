// Euclidean norm of all gradients together.
#pragma once

#include "core/forms.hpp"
#include "core/sum.hpp"
#include "core/view.hpp"

namespace assay::reference {

/// norm[0] = sqrt(sum_i g[i]^2); g [n], norm [1]. Source: Pascanu, Mikolov & Bengio, ICML 2013, section 3.2.
template <class T>
void global_grad_norm(View<const T> g, View<T> norm) {
  Sum<T> squares;
  for (Index i = 0; i < g.dim(0); ++i) squares += g(i) * g(i);
  norm(0) = sqrt(squares.value());
}

}  // namespace assay::reference
