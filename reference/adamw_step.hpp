// One step of AdamW.
#pragma once

#include <cmath>

#include "core/forms.hpp"
#include "core/sum.hpp"
#include "core/view.hpp"
#include "reference/orders.hpp"

namespace assay::reference {

/// m' = beta1 m + (1 - beta1) g, v' = beta2 v + (1 - beta2) g^2,
/// p' = (1 - lr weight_decay) p - lr / (1 - beta1^step) m' / (sqrt(v') / sqrt(1 - beta2^step) + eps); all [n], p, m and
/// v in place. Constants are formed in double from float32 parameters and enter as one number each. Bounds are also those of
/// m + (1 - beta1) (g - m), and of lr m^ / (sqrt(v^) + eps) with m^ = m' / (1 - beta1^step) and v^ = v' / (1 - beta2^step).
/// Source: Loshchilov & Hutter, ICLR 2019, algorithm 2.
template <class T>
void adamw_step(View<T> p, View<T> m, View<T> v, View<const T> g, double lr, double beta1, double beta2, double eps,
                double weight_decay, double step) {
  const auto f32 = [](double x) { return static_cast<double>(static_cast<float>(x)); };
  const double corrected1 = 1 - std::pow(f32(beta1), step), corrected2 = 1 - std::pow(f32(beta2), step);
  const T keep1(f32(beta1)), take1(1 - f32(beta1)), keep2(f32(beta2)), take2(1 - f32(beta2));
  const T decay(1 - f32(lr) * f32(weight_decay)), size(f32(lr) / corrected1), scale(1 / std::sqrt(corrected2)),
      small(f32(eps)), rate(f32(lr)), inverse1(1 / corrected1), inverse2(1 / corrected2);
  for (Index i = 0; i < p.dim(0); ++i) {
    Sum<T> squares, moved;
    squares += keep2 * v(i);
    squares += product(take2, g(i), g(i));
    m(i) = weighted_mean(keep1, m(i), take1, g(i));
    v(i) = squares.value();
    const T update = either_order(T(size * quotient(m(i), sqrt(v(i)) * scale + small)),
                                  T(rate * quotient(m(i) * inverse1, sqrt(v(i) * inverse2) + small)));
    moved += decay * p(i);
    moved += -update;
    p(i) = moved.value();
  }
}

}  // namespace assay::reference
