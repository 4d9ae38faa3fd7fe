// Shared by the references of NF4: the float values of elements of every number type.
#pragma once

#include <algorithm>

#include "core/any_formula.hpp"
#include "core/forms.hpp"
#include "core/nf4.hpp"
#include "core/sum.hpp"
#include "core/view.hpp"

namespace assay::reference {

/// Value of an input element as float, without its error or derivative.
template <class T>
float value_of(const T& x) {
  return static_cast<float>(x);
}
inline float value_of(const Bounded& x) { return static_cast<float>(x.value); }
template <class T>
float value_of(const Dual<T>& x) {
  return value_of(x.value);
}
template <class T>
float value_of(const std::complex<T>& x) {
  return value_of(x.real());
}

/// Converts a float to the number type of an input element.
template <class T>
struct AsInput {
  static T value(float x) { return T(x); }
};
template <>
struct AsInput<Bounded> {
  static Bounded value(float x) { return Bounded::input(x); }
};
template <class T>
struct AsInput<Dual<T>> {
  static Dual<T> value(float x) { return AsInput<T>::value(x); }
};

/// Returns the codebook entry of element (j, p) of codes [n, 32 blocks].
template <class T>
float nf4_entry(View<const T> codes, Index j, Index p) {
  const Index pair = whole(codes(j, p / 2));
  return kNf4[static_cast<std::size_t>(p % 2 == 0 ? pair / 16 : pair % 16)];
}

/// Returns the scale of element (j, p).
template <class T>
T nf4_block_scale(View<const T> absmax, Index j, Index p) {
  const float scale = value_of(absmax(j, p / kNf4Block));
  const T counted = AsInput<T>::value(nf4_scale(scale));
  return lost<T>(Loss::small_scale) ? any_formula(counted, AsInput<T>::value(scale)) : counted;
}

/// Returns element (j, p) of the matrix encoded by codes [n, 32 blocks] and absmax [n, blocks]: an entry of the
/// codebook times the scale of its block, rounded once to float.
template <class T>
T nf4_weight(View<const T> codes, View<const T> absmax, Index j, Index p) {
  const float entry = nf4_entry(codes, j, p), scale = value_of(absmax(j, p / kNf4Block));
  const T weight = AsInput<T>::value(entry * nf4_scale(scale));
  return lost<T>(Loss::small_scale) ? any_formula(weight, AsInput<T>::value(entry * scale)) : weight;
}

/// Returns sum_p x(p) w[j,p] over the k elements of row j. Kernels may also multiply entries of the codebook by x first
/// and scale these products, or their sums within a block: products of three factors instead of two, which may overflow
/// before scaling.
template <class T, class X>
T nf4_dot(View<const T> codes, View<const T> absmax, Index j, Index k, X x) {
  Sum<T> sum, scaled, by_blocks;
  for (Index first = 0; first < k; first += kNf4Block) {
    const T scale = nf4_block_scale(absmax, j, first);
    Sum<T> entries;
    for (Index p = first; p < std::min(first + kNf4Block, k); ++p) {
      const T entry = AsInput<T>::value(nf4_entry(codes, j, p));
      sum += x(p) * nf4_weight(codes, absmax, j, p);
      scaled += product(scale, entry, x(p));
      entries += entry * x(p);
    }
    by_blocks += T(scale * entries.value());
  }
  return any_formula(sum.value(), any_formula(scaled.value(), by_blocks.value()));
}

}  // namespace assay::reference
