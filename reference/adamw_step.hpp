// One step of AdamW.
#pragma once

#include <cmath>

#include "core/forms.hpp"
#include "core/sum.hpp"
#include "core/view.hpp"
#include "reference/orders.hpp"

namespace assay::reference {

/// m' = beta1 m + (1 - beta1) g, v' = beta2 v + (1 - beta2) g^2,
/// p' = (1 - lr weight_decay) p - lr / (1 - beta1^step) m' / (sqrt(v') / sqrt(1 - beta2^step) + eps); all [n]; p, m and
/// v in place; rounded [copies, n] is overwritten with p'. Constants are formed in double from float32 parameters and rounded once, or as quotients and roots in
/// float32. Bounds also hold for means in any order of weighted_mean, for lr m^ / (sqrt(v^) + eps) with m^ = m' / (1 -
/// beta1^step) and v^ = v' / (1 - beta2^step), for lr sqrt(1 - beta2^step) / (1 - beta1^step) m' / (sqrt(v') + eps
/// sqrt(1 - beta2^step)), and for a decay that is subtracted: p - lr weight_decay p, or p - lr (m^ / (sqrt(v^) + eps) +
/// weight_decay p).
/// Source: Loshchilov & Hutter, ICLR 2019, algorithm 2; Kingma & Ba, ICLR 2015, section 2 (the third of these updates).
template <class T>
void adamw_step(View<T> p, View<T> m, View<T> v, View<const T> g, View<T> rounded, double lr, double beta1,
                double beta2, double eps, double weight_decay, double step) {
  const auto f32 = [](double x) { return static_cast<double>(static_cast<float>(x)); };
  const double corrected1 = 1 - std::pow(f32(beta1), step), corrected2 = 1 - std::pow(f32(beta2), step);
  const T keep1(f32(beta1)), take1(1 - f32(beta1)), keep2(f32(beta2)), take2(1 - f32(beta2)), rate(f32(lr)),
      small(f32(eps));
  const T decay(1 - f32(lr) * f32(weight_decay)), decayed(f32(lr) * f32(weight_decay)), of_weights(f32(weight_decay));
  const T correction1(corrected1), correction2(corrected2), inverse1(1 / corrected1), inverse2(1 / corrected2),
      root = sqrt(correction2);
  const T size(rate / correction1), scale(T(1) / root), whole(T(rate * root) / correction1), small_root(small * root);
  for (Index i = 0; i < p.dim(0); ++i) {
    Sum<T> squares;
    squares += keep2 * v(i);
    squares += product(take2, g(i), g(i));
    m(i) = weighted_mean(keep1, m(i), take1, g(i));
    v(i) = any_order(squares.value(), weighted_mean(keep2, v(i), take2, T(g(i) * g(i))));
    const T rms = sqrt(v(i)), corrected = any_order(T(rms * scale), T(rms / root));
    const T mean = any_order(T(m(i) * inverse1), T(m(i) / correction1)),
            square = any_order(T(v(i) * inverse2), T(v(i) / correction2));
    const T spread = sqrt(square) + small;
    const T update =
        any_order(scaled_quotient(size, m(i), T(corrected + small)),
                  any_order(scaled_quotient(rate, mean, spread), scaled_quotient(whole, m(i), T(rms + small_root))));
    const T together = T(rate * T(quotient(mean, spread) + of_weights * p(i)));
    p(i) = any_order(T(decay * p(i) - update), any_order(T(T(p(i) - T(decayed * p(i))) - update), T(p(i) - together)));
    for (Index c = 0; c < rounded.dim(0); ++c) rounded(c, i) = p(i);
  }
}

}  // namespace assay::reference
