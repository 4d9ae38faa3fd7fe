// What the references of NF4 share: numbers of every type as the floats that they stand for.
#pragma once

#include "core/forms.hpp"
#include "core/nf4.hpp"
#include "core/view.hpp"

namespace assay::reference {

/// The float that an element of an input is.
template <class T>
float held(const T& x) {
  return static_cast<float>(x);
}
inline float held(const Bounded& x) { return static_cast<float>(x.value); }
template <class T>
float held(const Dual<T>& x) {
  return held(x.value);
}
template <class T>
float held(const std::complex<T>& x) {
  return held(x.real());
}

/// A float as if it were an element of an input.
template <class T>
struct Given {
  static T value(float x) { return T(x); }
};
template <>
struct Given<Bounded> {
  static Bounded value(float x) { return Bounded::input(x); }
};
template <class T>
struct Given<Dual<T>> {
  static Dual<T> value(float x) { return Given<T>::value(x); }
};

/// Element (j, p) of the matrix that codes [n, 32 blocks] and absmax [n, blocks] stand for: an entry of the codebook times
/// the scale of its block, rounded once to float.
template <class T>
T nf4_weight(View<const T> codes, View<const T> absmax, Index j, Index p) {
  const Index pair = whole(codes(j, p / 2)), code = p % 2 == 0 ? pair / 16 : pair % 16;
  return Given<T>::value(kNf4[static_cast<std::size_t>(code)] * nf4_scale(held(absmax(j, p / kNf4Block))));
}

}  // namespace assay::reference
