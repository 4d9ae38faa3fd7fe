// The 16-bit numbers of CUDA's cuda_fp16.h and cuda_bf16.h. Arithmetic is that of float, rounded once to nearest.
#pragma once

#include "core/half.hpp"
#include "cuda_runtime.h"

namespace assay::cuda_host {

inline Half round_to(Half, float x) { return to_half(x); }
inline BFloat16 round_to(BFloat16, float x) { return to_bfloat16(x); }

/// Bits of a 16-bit number, which convert to and from that number.
template <class Storage>
struct Raw {
  unsigned short x;
};

template <class Storage>
struct Narrow {
  unsigned short bits;

  Narrow() = default;
  Narrow(float x) : bits(round_to(Storage{}, x).bits) {}
  Narrow(double x) : Narrow(static_cast<float>(x)) {}
  Narrow(int x) : Narrow(static_cast<float>(x)) {}
  Narrow(unsigned x) : Narrow(static_cast<float>(x)) {}
  Narrow(long x) : Narrow(static_cast<float>(x)) {}
  Narrow(unsigned long x) : Narrow(static_cast<float>(x)) {}
  Narrow(Raw<Storage> raw) : bits(raw.x) {}
  operator float() const { return widen(Storage{bits}); }
  operator Raw<Storage>() const { return {bits}; }

  friend Narrow operator+(Narrow x, Narrow y) { return wide(x) + wide(y); }
  friend Narrow operator-(Narrow x, Narrow y) { return wide(x) - wide(y); }
  friend Narrow operator*(Narrow x, Narrow y) { return wide(x) * wide(y); }
  friend Narrow operator/(Narrow x, Narrow y) { return wide(x) / wide(y); }
  friend bool operator==(Narrow x, Narrow y) { return wide(x) == wide(y); }
  friend bool operator!=(Narrow x, Narrow y) { return wide(x) != wide(y); }
  friend bool operator<(Narrow x, Narrow y) { return wide(x) < wide(y); }
  friend bool operator>(Narrow x, Narrow y) { return wide(x) > wide(y); }
  friend bool operator<=(Narrow x, Narrow y) { return wide(x) <= wide(y); }
  friend bool operator>=(Narrow x, Narrow y) { return wide(x) >= wide(y); }
  Narrow operator-() const { return -wide(*this); }
  Narrow& operator+=(Narrow y) { return *this = *this + y; }
  Narrow& operator-=(Narrow y) { return *this = *this - y; }
  Narrow& operator*=(Narrow y) { return *this = *this * y; }
  Narrow& operator/=(Narrow y) { return *this = *this / y; }

 private:
  static float wide(Narrow x) { return widen(Storage{x.bits}); }
};

template <class Storage>
struct alignas(4) NarrowPair {
  Narrow<Storage> x, y;

  friend NarrowPair operator+(NarrowPair a, NarrowPair b) { return {a.x + b.x, a.y + b.y}; }
  friend NarrowPair operator-(NarrowPair a, NarrowPair b) { return {a.x - b.x, a.y - b.y}; }
  friend NarrowPair operator*(NarrowPair a, NarrowPair b) { return {a.x * b.x, a.y * b.y}; }
};

namespace toolkit {

template <class S>
Narrow<S> __hadd(Narrow<S> x, Narrow<S> y) {
  return x + y;
}
template <class S>
Narrow<S> __hsub(Narrow<S> x, Narrow<S> y) {
  return x - y;
}
template <class S>
Narrow<S> __hmul(Narrow<S> x, Narrow<S> y) {
  return x * y;
}
template <class S>
Narrow<S> __hdiv(Narrow<S> x, Narrow<S> y) {
  return x / y;
}
template <class S>
Narrow<S> __hneg(Narrow<S> x) {
  return -x;
}
template <class S>
Narrow<S> __hfma(Narrow<S> x, Narrow<S> y, Narrow<S> z) {
  return std::fmaf(static_cast<float>(x), static_cast<float>(y), static_cast<float>(z));
}
template <class S>
Narrow<S> __hmax(Narrow<S> x, Narrow<S> y) {
  return std::fmax(static_cast<float>(x), static_cast<float>(y));
}
template <class S>
Narrow<S> __hmin(Narrow<S> x, Narrow<S> y) {
  return std::fmin(static_cast<float>(x), static_cast<float>(y));
}
template <class S>
bool __hgt(Narrow<S> x, Narrow<S> y) {
  return x > y;
}
template <class S>
bool __hlt(Narrow<S> x, Narrow<S> y) {
  return x < y;
}
template <class S>
bool __hisnan(Narrow<S> x) {
  return std::isnan(static_cast<float>(x));
}
template <class S>
Narrow<S> hexp(Narrow<S> x) {
  return std::exp(static_cast<float>(x));
}
template <class S>
Narrow<S> hlog(Narrow<S> x) {
  return std::log(static_cast<float>(x));
}
template <class S>
Narrow<S> hsqrt(Narrow<S> x) {
  return std::sqrt(static_cast<float>(x));
}
template <class S>
Narrow<S> hrsqrt(Narrow<S> x) {
  return rsqrtf(static_cast<float>(x));
}
template <class S>
NarrowPair<S> __hadd2(NarrowPair<S> a, NarrowPair<S> b) {
  return a + b;
}
template <class S>
NarrowPair<S> __hsub2(NarrowPair<S> a, NarrowPair<S> b) {
  return a - b;
}
template <class S>
NarrowPair<S> __hmul2(NarrowPair<S> a, NarrowPair<S> b) {
  return a * b;
}
template <class S>
NarrowPair<S> __hfma2(NarrowPair<S> a, NarrowPair<S> b, NarrowPair<S> c) {
  return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)};
}
template <class S>
NarrowPair<S> __hmax2(NarrowPair<S> a, NarrowPair<S> b) {
  return {__hmax(a.x, b.x), __hmax(a.y, b.y)};
}
template <class S>
float __low2float(NarrowPair<S> a) {
  return a.x;
}
template <class S>
float __high2float(NarrowPair<S> a) {
  return a.y;
}
template <class S>
NarrowPair<S> atomicAdd(NarrowPair<S>* address, NarrowPair<S> x) {
  return atomically(address, [x](NarrowPair<S> old) { return old + x; });
}

}  // namespace toolkit

}  // namespace assay::cuda_host
