// Mutations that falsify/mutation/source/mutate.hpp lacks because kernels do not need them: operands of class types,
// such as Bounded and Dual, for which some other operators exist. Included before each rewritten source of the engine.
#pragma once

#include "falsify/mutation/source/mutate.hpp"

namespace assay_mutate {

template <class L, class R>
concept HasClass = std::is_class_v<L> || std::is_class_v<R>;

// Variants: 1 and 2 are other operators, 7 exchanges the operands; a variant exists if it compiles to the same type.
#define ASSAY_MUTATE_CLASS(Name, op, other1, other2)                                                             \
  template <class L, class R>                                                                                    \
  requires HasClass<L, R>                                                                                        \
  constexpr auto operator op(Name##Left<L> l, R r) {                                                             \
    using T = decltype(l.left op r);                                                                             \
    if (std::is_constant_evaluated()) return static_cast<T>(l.left op r);                                        \
    constexpr bool first = requires(L a, R b) { static_cast<T>(a other1 b); };                                   \
    constexpr bool second = requires(L a, R b) { static_cast<T>(a other2 b); };                                  \
    constexpr bool turned = std::is_same_v<L, R> && !std::is_same_v<Name, Plus> && !std::is_same_v<Name, Times>; \
    const int v = variant(l.site, bits(first ? 1 : 0, second ? 2 : 0, turned ? 7 : 0));                          \
    if constexpr (first)                                                                                         \
      if (v == 1) return static_cast<T>(l.left other1 r);                                                        \
    if constexpr (second)                                                                                        \
      if (v == 2) return static_cast<T>(l.left other2 r);                                                        \
    if constexpr (turned)                                                                                        \
      if (v == 7) return static_cast<T>(r op l.left);                                                            \
    return static_cast<T>(l.left op r);                                                                          \
  }
ASSAY_MUTATE_CLASS(Plus, +, -, *)
ASSAY_MUTATE_CLASS(Minus, -, +, +)
ASSAY_MUTATE_CLASS(Times, *, +, /)
ASSAY_MUTATE_CLASS(Over, /, *, *)

// `text += more` has no other operator; omitting it is a variant of its statement.
#define ASSAY_MUTATE_CLASS_ASSIGNMENT(Name, op, other)           \
  template <class X, class R>                                    \
  requires std::is_class_v<X>                                    \
  constexpr X& operator op(X& x, Name##Right<R> r) {             \
    if (std::is_constant_evaluated()) return x op r.right;       \
    constexpr bool exists = requires(X & a, R b) { a other b; }; \
    const int v = variant(r.site, bits(exists ? 1 : 0));         \
    if constexpr (exists)                                        \
      if (v == 1) return x other r.right;                        \
    return x op r.right;                                         \
  }
ASSAY_MUTATE_CLASS_ASSIGNMENT(PlusAssign, +=, -=)
ASSAY_MUTATE_CLASS_ASSIGNMENT(OrAssign, |=, &=)
ASSAY_MUTATE_CLASS_ASSIGNMENT(AndAssign, &=, |=)

}  // namespace assay_mutate
