// Small formulas that correct kernels evaluate in several ways, and functions that references need in addition to
// operators, under one name for every number type. Bounded's overloads (core/bounded.hpp) bound every evaluation named
// here.
#pragma once

#include <cmath>
#include <complex>
#include <vector>

#include "core/bounded.hpp"
#include "core/digits50.hpp"
#include "core/dual.hpp"
#include "core/shape.hpp"

namespace assay {

// References call exp(x) without a namespace: lookup finds the overload of their number type.
using std::cos;
using std::exp;
using std::expm1;
using std::log;
using std::log1p;
using std::sin;
using std::sqrt;
using std::tanh;
template <class T>
std::complex<T> expm1(const std::complex<T>& x) {
  return std::exp(x) - T(1);
}
template <class T>
std::complex<T> log1p(const std::complex<T>& x) {
  return std::log(T(1) + x);
}

/// Returns x / y: one division, or a product with the reciprocal.
template <class T>
T quotient(const T& x, const T& y) {
  return x / y;
}

/// Returns 1 / sqrt(x): a root and a division, or the library's own function.
template <class T>
T reciprocal_sqrt(const T& x) {
  return T(1) / sqrt(x);
}

/// Returns a b c, multiplied in any order.
template <class T>
T product(const T& a, const T& b, const T& c) {
  return a * b * c;
}

/// Returns 1 / (1 + exp(-x)), or exp(x) / (1 + exp(x)) for x < 0.
template <class T>
T sigmoid(const T& x) {
  return T(1) / (T(1) + exp(-x));
}

/// Returns 1 - sigmoid(x): as that difference, or as sigmoid(-x).
template <class T>
T sigmoid_complement(const T& x) {
  return T(1) - sigmoid(x);
}

/// Counts how often each of the terms score(0) .. score(n - 1) of a softmax may be rescaled: never if the maximum is
/// known before the first term (two passes); otherwise at most once per tile (Arithmetic::online_tile) and once for
/// each term above it (bounded_functions.cpp).
template <class T>
class Rescalings {
 public:
  template <class F>
  Rescalings(Index /*n*/, F /*score*/) {}
  double of(const T& /*term*/) const { return 0; }
};
template <>
class Rescalings<Bounded> {
 public:
  template <class F>
  Rescalings(Index n, F score)
      : Rescalings(most(static_cast<std::size_t>(n)) > 0 ? drawn(n, score) : std::vector<Bounded>()) {}
  double of(const Bounded& term) const;
  /// Returns the most rescalings of a term in a row of `terms` terms.
  static double most(std::size_t terms);

 private:
  template <class F>
  static std::vector<Bounded> drawn(Index n, F score) {
    std::vector<Bounded> terms;
    for (Index j = 0; j < n; ++j) terms.push_back(score(j));
    return terms;
  }
  explicit Rescalings(std::vector<Bounded> terms);

  double most_;
  bool counted_ = false;
  std::vector<double> reaches_;  ///< the `most_` + 1 largest, descending
};

/// Returns exp(x - maximum), a term of a sum that is rescaled `rescalings` times. Arguments of rescalings telescope:
/// exp(x - m1) exp(m1 - m2) .. exp(mk - m) rounds the same |x - m| in parts, and each factor costs one more exp and
/// product.
template <class T>
T softmax_term(const T& x, const T& maximum, double /*rescalings*/) {
  return exp(x - maximum);
}

/// Returns r (a - b): the difference first, or the two products.
template <class T>
T scaled_difference(const T& r, const T& a, const T& b) {
  return r * (a - b);
}

/// Returns the integer of an element of an index tensor.
template <class T>
Index whole(const T& x) {
  return static_cast<Index>(x);
}
inline Index whole(const Bounded& x) { return static_cast<Index>(x.value); }
template <class T>
Index whole(const Dual<T>& x) {
  return whole(x.value);
}
template <class T>
Index whole(const std::complex<T>& x) {
  return static_cast<Index>(x.real());
}

}  // namespace assay
