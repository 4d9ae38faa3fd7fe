// Building blocks of rewritten kernel sources (rewrite.py): every mutable place calls variant() to select its variant.
// The compiler's -include adds this file before each rewritten file; kernels do not refer to it.
//
// An operator `a + b` becomes `a + Plus{site} + b`, which keeps precedence and order for any a and b. In constant
// expressions, and while no mutant is chosen, every place computes the source's value.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

namespace assay_mutate {

constexpr std::uint32_t kVariants = 16;  ///< largest number per site; 0 is the source's own

/// The current variant. One per library: places in all its files read it.
struct State {
  std::uint32_t site = 0, variant = 0;
  std::uint32_t mask = ~0U;          ///< 0: no mutant runs, and every place records that it was reached
  std::int64_t turns = 1LL << 62;    ///< comparisons left; at 0 the mutant counts as endless
  std::uint32_t* reached = nullptr;  ///< by site: a bit for each variant
};
extern State state __attribute__((visibility("hidden")));

/// Records the place, or returns the chosen variant.
int chosen(std::uint32_t site, std::uint32_t applicable) __attribute__((cold, noinline, visibility("hidden")));
/// Ends the process.
[[noreturn]] void never_ends() __attribute__((cold, noinline, visibility("hidden")));

/// `applicable`: a bit for each variant that applies to the operands' types.
inline int variant(std::uint32_t site, std::uint32_t applicable) {
  return __builtin_expect(((state.site ^ site) & state.mask) == 0, 0) ? chosen(site, applicable) : 0;
}
inline void turn() {
  if (__builtin_expect(--state.turns < 0, 0)) never_ends();
}
constexpr std::uint32_t bits() { return 0; }
template <class... More>
constexpr std::uint32_t bits(int first, More... more) {
  return (first > 0 ? 1U << first : 0U) | bits(more...);
}

template <class T>
inline constexpr bool is_real = std::is_floating_point_v<T>;
template <class T>
inline constexpr bool is_number = std::is_arithmetic_v<T> && !std::is_same_v<T, bool>;

/// Returns x truncated to the upper 16 bits of a float, and x rounded to binary16; values other than floating-point
/// numbers unchanged.
template <class T>
T bfloat16(T x) {
  if constexpr (is_real<T>)
    return static_cast<T>(std::bit_cast<float>(std::bit_cast<std::uint32_t>(static_cast<float>(x)) & 0xffff0000U));
  else return x;
}
template <class T>
T half(T x) {
  if constexpr (is_real<T>) return static_cast<T>(static_cast<_Float16>(static_cast<float>(x)));
  else return x;
}

// Variants of arithmetic: 1 and 2 other operators, 3 bfloat16, 4 and 5 an operand doubled, 6 half, 7 exchanged
// operands.
template <class L, class R, class T>
constexpr std::uint32_t arithmetic_variants(int second) {
  constexpr bool same = std::is_convertible_v<L, R> && std::is_convertible_v<R, L> && is_number<L> && is_number<R>;
  return bits(1, same ? second : 0, is_real<T> ? 3 : 0, same ? 4 : 0, same ? 5 : 0, is_real<T> ? 6 : 0, same ? 7 : 0);
}

#define ASSAY_MUTATE_LEFT(Name, op)                       \
  struct Name {                                           \
    std::uint32_t site;                                   \
  };                                                      \
  template <class L>                                      \
  struct Name##Left {                                     \
    L left;                                               \
    std::uint32_t site;                                   \
  };                                                      \
  template <class L>                                      \
  constexpr Name##Left<L> operator op(L left, Name tag) { \
    return {left, tag.site};                              \
  }

// `second` is the number of `other2` among the variants, 0 if it does not apply.
#define ASSAY_MUTATE_ARITHMETIC(Name, op, other1, other2, second)             \
  ASSAY_MUTATE_LEFT(Name, op)                                                 \
  template <class L, class R>                                                 \
  constexpr auto operator op(Name##Left<L> l, R r) {                          \
    using T = decltype(l.left op r);                                          \
    if (std::is_constant_evaluated()) return static_cast<T>(l.left op r);     \
    if constexpr (!is_number<L> || !is_number<R>) {                           \
      if constexpr (std::is_pointer_v<L> && std::is_integral_v<R>)            \
        if (variant(l.site, bits(1)) != 0) return static_cast<T>(l.left - r); \
      return static_cast<T>(l.left op r);                                     \
    } else {                                                                  \
      const int v = variant(l.site, arithmetic_variants<L, R, T>(second));    \
      if (__builtin_expect(v == 0, 1)) return static_cast<T>(l.left op r);    \
      if (v == 1) return static_cast<T>(l.left other1 r);                     \
      if (v == 3) return bfloat16(static_cast<T>(l.left op r));               \
      if (v == 6) return half(static_cast<T>(l.left op r));                   \
      if constexpr ((arithmetic_variants<L, R, T>(second) & bits(4)) != 0) {  \
        if (v == 2) return static_cast<T>(l.left other2 r);                   \
        if (v == 4) return static_cast<T>(l.left op l.left);                  \
        if (v == 5) return static_cast<T>(r op r);                            \
        if (v == 7) return static_cast<T>(r op l.left);                       \
      }                                                                       \
      return static_cast<T>(l.left op r);                                     \
    }                                                                         \
  }

ASSAY_MUTATE_ARITHMETIC(Plus, +, -, *, 2)
ASSAY_MUTATE_ARITHMETIC(BitOr, |, &, ^, 2)
ASSAY_MUTATE_ARITHMETIC(BitAnd, &, |, ^, 2)
ASSAY_MUTATE_ARITHMETIC(BitXor, ^, |, &, 2)
ASSAY_MUTATE_ARITHMETIC(ShiftLeft, <<, >>, +, 0)
ASSAY_MUTATE_ARITHMETIC(ShiftRight, >>, <<, +, 0)
ASSAY_MUTATE_ARITHMETIC(Modulo, %, /, *, 2)

/// Operators whose alternatives exist for some types only.
ASSAY_MUTATE_LEFT(Minus, -)
template <class L, class R>
constexpr auto operator-(MinusLeft<L> l, R r) {
  using T = decltype(l.left - r);
  if (std::is_constant_evaluated()) return static_cast<T>(l.left - r);
  if constexpr (!is_number<L> || !is_number<R>) {
    if constexpr (std::is_pointer_v<L> && std::is_integral_v<R>)
      return static_cast<T>(variant(l.site, bits(1)) == 0 ? l.left - r : l.left + r);
    else return static_cast<T>(l.left - r);
  } else {
    switch (variant(l.site, arithmetic_variants<L, R, T>(0))) {
      case 1: return static_cast<T>(l.left + r);
      case 3: return bfloat16(static_cast<T>(l.left - r));
      case 4: return static_cast<T>(l.left - l.left);
      case 5: return static_cast<T>(r - r);
      case 6: return half(static_cast<T>(l.left - r));
      case 7: return static_cast<T>(r - l.left);
      default: return static_cast<T>(l.left - r);
    }
  }
}
ASSAY_MUTATE_LEFT(Times, *)
template <class L, class R>
constexpr auto operator*(TimesLeft<L> l, R r) {
  using T = decltype(l.left * r);
  if (std::is_constant_evaluated()) return static_cast<T>(l.left * r);
  switch (variant(l.site, arithmetic_variants<L, R, T>(is_real<T> ? 2 : 0))) {
    case 1: return static_cast<T>(l.left + r);
    case 2: return static_cast<T>(l.left / r);
    case 3: return bfloat16(static_cast<T>(l.left * r));
    case 4: return static_cast<T>(l.left * l.left);
    case 5: return static_cast<T>(r * r);
    case 6: return half(static_cast<T>(l.left * r));
    default: return static_cast<T>(l.left * r);
  }
}
ASSAY_MUTATE_LEFT(Over, /)
template <class L, class R>
constexpr auto operator/(OverLeft<L> l, R r) {
  using T = decltype(l.left / r);
  if (std::is_constant_evaluated()) return static_cast<T>(l.left / r);
  const int v = variant(l.site, arithmetic_variants<L, R, T>(is_real<T> ? 0 : 2));
  if (v == 1) return static_cast<T>(l.left * r);
  if (v == 3) return bfloat16(static_cast<T>(l.left / r));
  if (v == 4) return static_cast<T>(l.left / l.left);
  if (v == 5) return static_cast<T>(r / r);
  if (v == 6) return half(static_cast<T>(l.left / r));
  if (v == 7) return static_cast<T>(r / l.left);
  if constexpr (!is_real<T>)
    if (v == 2) return static_cast<T>(l.left % r);
  return static_cast<T>(l.left / r);
}

// Variants of comparisons: 1 the boundary moved, 2 negated, 3 operands exchanged, 4 always true.
#define ASSAY_MUTATE_COMPARISON(Name, op, boundary, negation, exchanged) \
  ASSAY_MUTATE_LEFT(Name, op)                                            \
  template <class L, class R>                                            \
  constexpr bool operator op(Name##Left<L> l, R r) {                     \
    if (std::is_constant_evaluated()) return l.left op r;                \
    turn();                                                              \
    switch (variant(l.site, bits(1, 2, 3, 4))) {                         \
      case 1: return l.left boundary r;                                  \
      case 2: return l.left negation r;                                  \
      case 3: return l.left exchanged r;                                 \
      case 4: return true;                                               \
      default: return l.left op r;                                       \
    }                                                                    \
  }
ASSAY_MUTATE_COMPARISON(Less, <, <=, >=, >)
ASSAY_MUTATE_COMPARISON(LessEqual, <=, <, >, >=)
ASSAY_MUTATE_COMPARISON(Greater, >, >=, <=, <)
ASSAY_MUTATE_COMPARISON(GreaterEqual, >=, >, <, <=)
ASSAY_MUTATE_COMPARISON(Equal, ==, ==, !=, ==)
ASSAY_MUTATE_COMPARISON(NotEqual, !=, !=, ==, !=)

// Variants of compound assignments, `x += e` as `x += PlusAssign{site} += e`: 1 another operator, 2 plain assignment, 3
// omitted, 4 bfloat16 of the result, 5 half.
#define ASSAY_MUTATE_ASSIGNMENT(Name, op, other, plain)                               \
  template <class R>                                                                  \
  struct Name##Right {                                                                \
    R right;                                                                          \
    std::uint32_t site;                                                               \
  };                                                                                  \
  struct Name {                                                                       \
    std::uint32_t site;                                                               \
    template <class R>                                                                \
    constexpr Name##Right<R> operator op(R right) const {                             \
      return {right, site};                                                           \
    }                                                                                 \
  };                                                                                  \
  template <class X, class R>                                                         \
  constexpr X& operator op(X& x, Name##Right<R> r) {                                  \
    if (std::is_constant_evaluated()) return x op r.right;                            \
    switch (variant(r.site, bits(1, 2, 3, is_real<X> ? 4 : 0, is_real<X> ? 5 : 0))) { \
      case 1: return x other r.right;                                                 \
      case 2: plain; return x;                                                        \
      case 3: return x;                                                               \
      case 4: x op r.right; return x = bfloat16(x);                                   \
      case 5: x op r.right; return x = half(x);                                       \
      default: return x op r.right;                                                   \
    }                                                                                 \
  }
#define ASSAY_MUTATE_PLAIN \
  if constexpr (std::is_arithmetic_v<X>) x = static_cast<X>(r.right)
ASSAY_MUTATE_ASSIGNMENT(PlusAssign, +=, -=, ASSAY_MUTATE_PLAIN)
ASSAY_MUTATE_ASSIGNMENT(MinusAssign, -=, +=, ASSAY_MUTATE_PLAIN)
ASSAY_MUTATE_ASSIGNMENT(TimesAssign, *=, +=, ASSAY_MUTATE_PLAIN)
ASSAY_MUTATE_ASSIGNMENT(OverAssign, /=, *=, ASSAY_MUTATE_PLAIN)
ASSAY_MUTATE_ASSIGNMENT(OrAssign, |=, &=, ASSAY_MUTATE_PLAIN)
ASSAY_MUTATE_ASSIGNMENT(AndAssign, &=, |=, ASSAY_MUTATE_PLAIN)
ASSAY_MUTATE_ASSIGNMENT(XorAssign, ^=, |=, ASSAY_MUTATE_PLAIN)
ASSAY_MUTATE_ASSIGNMENT(ShiftLeftAssign, <<=, >>=, ASSAY_MUTATE_PLAIN)
ASSAY_MUTATE_ASSIGNMENT(ShiftRightAssign, >>=, <<=, ASSAY_MUTATE_PLAIN)

/// A literal: 1 one more, 2 one less.
template <class T>
constexpr T integer(std::uint32_t site, T x) {
  if (std::is_constant_evaluated()) return x;
  switch (variant(site, bits(1, 2))) {
    case 1: return static_cast<T>(x + 1);
    case 2: return static_cast<T>(x - 1);
    default: return x;
  }
}
/// 1 a tenth more, 2 a tenth less, 3 negated; of 0: 4 one.
template <class T>
constexpr T real(std::uint32_t site, T x) {
  if (std::is_constant_evaluated()) return x;
  switch (variant(site, x == 0 ? bits(4) : bits(1, 2, 3))) {
    case 1: return x * static_cast<T>(1.1);
    case 2: return x * static_cast<T>(0.9);
    case 3: return -x;
    case 4: return T{1};
    default: return x;
  }
}
/// ++x: 1 by two, 2 omitted.
template <class T>
constexpr T& increment(std::uint32_t site, T& x) {
  if (std::is_constant_evaluated()) return ++x;
  turn();
  const int v = variant(site, bits(1, 2));
  if (v == 2) return x;
  if (v == 1) ++x;
  return ++x;
}
/// A condition: 1 negated.
template <class T>
constexpr bool truth(std::uint32_t site, const T& x) {
  if (std::is_constant_evaluated()) return static_cast<bool>(x);
  return variant(site, bits(1)) == 0 ? static_cast<bool>(x) : !static_cast<bool>(x);
}
/// A statement: 1 omitted.
inline bool runs(std::uint32_t site) { return variant(site, bits(1)) == 0; }
constexpr bool runs_in_constant(std::uint32_t site) { return std::is_constant_evaluated() || runs(site); }
/// `-x` as `Negated{site} * x`: 1 x.
struct Negated {
  std::uint32_t site;
};
template <class T>
constexpr auto operator*(Negated tag, T x) {
  using R = decltype(-x);
  if (std::is_constant_evaluated()) return static_cast<R>(-x);
  return static_cast<R>(variant(tag.site, bits(1)) == 0 ? -x : x);
}
/// `!x` as `Not{site} * x`: 1 x.
struct Not {
  std::uint32_t site;
};
template <class T>
constexpr bool operator*(Not tag, const T& x) {
  if (std::is_constant_evaluated()) return !x;
  return variant(tag.site, bits(1)) == 0 ? !static_cast<bool>(x) : static_cast<bool>(x);
}

}  // namespace assay_mutate

// For vectors of Highway, whose namespace only the rewritten file knows: keeps these bits of a vector of floats;
// removes the variants (`cut`) that do not apply to other vectors.
#define ASSAY_KEEP_BITS(vector, bits)                                             \
  [&](const auto& v) {                                                            \
    using AssayD = hn::DFromV<std::remove_cvref_t<decltype(v)>>;                  \
    if constexpr (std::is_same_v<hn::TFromD<AssayD>, float>) {                    \
      const hn::RebindToUnsigned<AssayD> u;                                       \
      return hn::BitCast(AssayD(), hn::And(hn::BitCast(u, v), hn::Set(u, bits))); \
    } else {                                                                      \
      return v;                                                                   \
    }                                                                             \
  }(vector)
#define ASSAY_FLOAT_VECTOR(v) std::is_same_v<hn::TFromD<hn::DFromV<std::remove_cvref_t<decltype(v)>>>, float>
