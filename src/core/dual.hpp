// Numbers that carry a derivative: Dual by the chain rule, std::complex by the complex step. A derivative along v is Im
// f(x + i h v) / h; with h = 2^-300 its truncation error vanishes below any rounding. Order, absolute value and maximum
// depend on the value (the real part) only, so a reference takes the same path as in double. At a kink the derivative
// is that of the branch taken.
// Source: Griewank & Walther, Evaluating Derivatives, 2nd ed., section 3.1; Squire & Trapp, SIAM Rev. 40 (1998).
#pragma once

#include <cmath>
#include <complex>

namespace assay {

/// value + derivative * epsilon with epsilon^2 = 0. T is double, or Bounded to bound rounding errors.
template <class T>
struct Dual {
  T value{};
  T derivative{};

  constexpr Dual() = default;
  constexpr Dual(T constant) : value(constant) {}  // NOLINT(google-explicit-constructor): constants mix in
  constexpr Dual(T v, T d) : value(v), derivative(d) {}

  friend constexpr Dual operator+(Dual x, Dual y) { return {x.value + y.value, x.derivative + y.derivative}; }
  friend constexpr Dual operator-(Dual x, Dual y) { return {x.value - y.value, x.derivative - y.derivative}; }
  friend constexpr Dual operator-(Dual x) { return {-x.value, -x.derivative}; }
  friend constexpr Dual operator*(Dual x, Dual y) {
    return {x.value * y.value, x.derivative * y.value + x.value * y.derivative};
  }
  friend constexpr Dual operator/(Dual x, Dual y) {
    const T quotient = x.value / y.value;
    return {quotient, (x.derivative - quotient * y.derivative) / y.value};
  }
  friend Dual sqrt(Dual x) {
    using std::sqrt;
    const T root = sqrt(x.value);
    return {root, x.derivative / (root + root)};
  }
  friend Dual exp(Dual x) {
    using std::exp;
    const T power = exp(x.value);
    return {power, x.derivative * power};
  }
  friend Dual log(Dual x) {
    using std::log;
    return {log(x.value), x.derivative / x.value};
  }

  friend Dual expm1(Dual x) {
    using std::exp;
    using std::expm1;
    return {expm1(x.value), x.derivative * exp(x.value)};
  }
  friend Dual log1p(Dual x) {
    using std::log1p;
    return {log1p(x.value), x.derivative / (T(1) + x.value)};
  }
  friend Dual sin(Dual x) {
    using std::cos;
    using std::sin;
    return {sin(x.value), x.derivative * cos(x.value)};
  }
  friend Dual cos(Dual x) {
    using std::cos;
    using std::sin;
    return {cos(x.value), -(x.derivative * sin(x.value))};
  }
  friend Dual tanh(Dual x) {
    using std::tanh;
    const T t = tanh(x.value);
    return {t, x.derivative * (T(1) - t * t)};
  }

  friend constexpr bool operator<(Dual x, Dual y) { return x.value < y.value; }
  friend constexpr bool operator>(Dual x, Dual y) { return y < x; }
  friend constexpr bool operator<=(Dual x, Dual y) { return x.value <= y.value; }
  friend constexpr bool operator>=(Dual x, Dual y) { return y <= x; }
};

/// Returns x < y by value, for every number type of a reference (std::complex has no order).
template <class T>
constexpr bool less(const T& x, const T& y) {
  return x < y;
}
template <class T>
constexpr bool less(const std::complex<T>& x, const std::complex<T>& y) {
  return x.real() < y.real();
}

/// Returns the larger of two by value; x on a tie.
template <class T>
constexpr T maximum(const T& x, const T& y) {
  return less(x, y) ? y : x;
}

/// Returns x, or -x if its value is negative.
template <class T>
constexpr T absolute(const T& x) {
  return less(x, T(0)) ? -x : x;
}

}  // namespace assay
