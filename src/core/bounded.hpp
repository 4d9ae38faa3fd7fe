// A value with the largest error that any correct kernel may have: running error analysis under the current thread's
// arithmetic (arithmetic.hpp). bounded.cpp derives the bounds of sums.
#pragma once

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <limits>

#include "core/arithmetic.hpp"
#include "core/dtype.hpp"
#include "core/sum.hpp"

namespace assay {

struct Bounded;

struct Roundings;

namespace detail {
/// Rounding data of the current arithmetic, null until computed. Arithmetic scopes reset it.
inline constinit thread_local const Roundings* in_force = nullptr;
}  // namespace detail

/// Rounding data that Bounded derives from an Arithmetic, computed once per thread and arithmetic.
struct Roundings {
  Arithmetic of;
  double unit;           ///< one rounding of a result, plus 2^-50 for evaluating values and bounds in double
  double division;       ///< relative error of one division
  double input_unit;     ///< one rounding of an input
  double input_floor;    ///< smallest normal input; rounding is absolute below it
  double aligned_floor;  ///< at least the same where block operations align products, otherwise 0
  double input_largest;  ///< larger inputs may become infinite
  double underflow;      ///< absolute error of a product or quotient near zero, flushed or not
  double flush;          ///< absolute error of any result that may be flushed to zero
  double largest;        ///< larger results may become infinite
  bool saturates;        ///< results that overflow may also stop at the largest finite value (IEEE 754, 7.4)
  bool nearest;          ///< one rounding to nearest per addition
  bool narrow;           ///< the accumulator holds fewer bits than float32
  double least = 0;      ///< in a NormalRangeScope: smaller results may be rounded as subnormals; otherwise 0

  explicit Roundings(const Arithmetic& arithmetic, bool normal_range = false);
  /// Returns the rounding data of current_arithmetic().
  static const Roundings& current() { return detail::in_force != nullptr ? *detail::in_force : work_out(); }
  /// |computed - exact| <= growth(n) * sum of |terms| for a sum of n terms in any order, terms as computed.
  double growth(double n) const;
  /// Returns how far the shift of a softmax may lie below the maximum of its scores (Arithmetic::lazy_rescaling).
  double stale() const { return of.lazy_rescaling * 0.6931471805599454; }
  /// Returns the error of adding a term that is not a product to a narrow accumulator.
  double taken_in(const Bounded& term) const;
  /// Returns whether, in a NormalRangeScope, a value within `error` of this magnitude may be too small. leaves_inputs()
  /// does so for inputs.
  bool leaves(double magnitude, double error) const {
    return least > 0 && magnitude + error > 0 && !(magnitude - error >= least);
  }
  bool leaves_inputs(double magnitude, double error) const {
    return least > 0 && magnitude + error > 0 && !(magnitude - error >= std::max(input_floor, aligned_floor));
  }

 private:
  static const Roundings& work_out();
};

/// While alive, removes the finite bound of every number on this thread that leaves the normal range of the declared
/// formats. If the bounds remain finite, powers of two commute with every rounding of the computation (bounded.cpp).
class NormalRangeScope {
 public:
  NormalRangeScope();
  ~NormalRangeScope();
  NormalRangeScope(const NormalRangeScope&) = delete;
  NormalRangeScope& operator=(const NormalRangeScope&) = delete;
};

struct Product;

/// |result of a correct kernel - value| <= error. `statistical` <= error holds with probability 1 - 9e-12 for sums of
/// terms with independent random signs, accumulated to nearest. `value` is the exact result as double evaluates it;
/// `error` covers that evaluation. `value` has the class that IEEE 754 gives (finite, +inf, -inf or NaN); `error` is
/// meaningful only if `value` is finite.
struct Bounded {
  double value = 0;
  double error = 0;
  double statistical = 0;
  bool may_overflow = false;  ///< some order of evaluation may overflow: +inf, -inf, NaN are correct too
  bool empty = false;         ///< a sum of no terms, unmodified: +0, not -0 (IEEE 754-2019, 9.4)

  Bounded() = default;
  /// A constant of the formula, rounded once to float.
  Bounded(double constant);  // NOLINT(google-explicit-constructor)
  Bounded(double v, double e, double s, bool overflows) : value(v), error(e), statistical(s), may_overflow(overflows) {}
  Bounded(const Product& product);  // NOLINT(google-explicit-constructor)

  /// An element of an input tensor: exact, unless the kernel declares that it rounds or flushes its inputs.
  static Bounded input(float x);
};

/// a * b before rounding. Conversion to Bounded rounds it; a sum may fuse it.
struct Product {
  double value;
  double error;        ///< inherited from the factors
  double statistical;  ///< likewise
  bool may_overflow;
  double left = 0, right = 0;  ///< reach of each factor: magnitude plus error
};

/// Statistics of a sum's terms that its bound is computed from. The reach of a term is its magnitude plus its error.
struct Terms {
  /// Terms of at most this reach are added at a cost of at most their reach (bounded.cpp). Any threshold is valid.
  static constexpr double kSmall = 0x1p-60;

  bool none = true;        ///< no term was added
  double total = 0;        ///< sum of the terms: the value, in double
  double magnitude = 0;    ///< sum of |finite terms|
  double squares = 0;      ///< sum of their squares
  double error = 0;        ///< sum of their errors, roundings of products included
  double count = 0;        ///< number of terms with a reach above 0: adding 0 rounds nothing
  double small_count = 0;  ///< number of those with a reach of at most kSmall
  double small = 0;        ///< sum of the reaches of those small terms
  double least = std::numeric_limits<double>::infinity();  ///< lower bound of the magnitude of every nonzero term
  bool may_overflow = false;

  void add(double term, double its_error, bool overflows) {
    const double size = std::fabs(term), reach = size + its_error;
    none = false;
    total += term;
    may_overflow |= overflows;
    if (!(size <= DBL_MAX)) [[unlikely]]
      return;  // the total shows its class; overflow concerns finite terms only
    magnitude += size;
    squares += term * term;
    error += its_error;
    if (!(reach > kSmall)) [[unlikely]]
      return count_small(reach, size - its_error);
    count += 1;
    least = std::min(least, size - its_error);
  }
  /// Counts a term with a reach of at most kSmall.
  void count_small(double reach, double its_least) {
    if (!(reach > 0)) return;
    count += 1;
    small_count += 1;
    small += reach;
    least = std::min(least, its_least);
  }

  void add(const Terms& other) {
    none &= other.none;
    total += other.total;
    magnitude += other.magnitude;
    squares += other.squares;
    error += other.error;
    count += other.count;
    small_count += other.small_count;
    small += other.small;
    least = std::min(least, other.least);
    may_overflow |= other.may_overflow;
  }

  /// Accounts for block alignment of the last added term, a product of factors with reaches `left` and `right`. Block
  /// operations align a factor's exponent to at least that of `floor` (bounded.cpp).
  void align(double left, double right, double floor, double term) {
    if (left > 0 && right > 0 && std::min(left, right) < floor && std::max(left, right) <= DBL_MAX)
      magnitude += std::max(std::max(left, floor) * std::max(right, floor) - std::fabs(term), 0.0);
  }

  /// Not inline, and by value: a Sum whose address escapes would live in memory instead of registers.
  static Bounded sum(Terms terms, const Roundings& roundings);
};

/// Order-free bound of a sum: holds for every order, blocking and use of FMA. About fifteen operations a term.
template <>
class Sum<Bounded> {
 public:
  Sum& operator+=(const Bounded& term) {
    terms_.add(term.value, narrow_ ? term.error + roundings_.taken_in(term) : term.error, term.may_overflow);
    return *this;
  }
  [[gnu::always_inline]] Sum& operator+=(const Product& term) {  // in the innermost loop of a product's reference
    const double reach = std::fabs(term.value) + term.error;
    terms_.add(term.value, term.error + unit_ * reach + (reach > 0 ? underflow_ : 0), term.may_overflow);
    if (floor_ > 0) [[unlikely]]
      terms_.align(term.left, term.right, floor_, term.value);
    return *this;
  }
  Sum& operator+=(const Sum& other) {
    terms_.add(other.terms_);
    return *this;
  }
  Bounded value() const {
    Bounded sum = Terms::sum(terms_, roundings_);
    sum.empty = terms_.none;
    return sum;
  }

 private:
  const Roundings& roundings_ = Roundings::current();
  double unit_ = roundings_.unit, underflow_ = roundings_.underflow, floor_ = roundings_.aligned_floor;
  bool narrow_ = roundings_.narrow;
  Terms terms_;
};

Bounded operator+(const Bounded& x, const Bounded& y);
Bounded operator-(const Bounded& x, const Bounded& y);
Bounded operator-(const Bounded& x);
Bounded operator/(const Bounded& x, const Bounded& y);
/// Error of a function: the propagated error of its argument plus the error that the current library promises
/// (core/accuracy.hpp).
Bounded sqrt(const Bounded& x);
Bounded exp(const Bounded& x);
Bounded expm1(const Bounded& x);
Bounded log(const Bounded& x);
Bounded log1p(const Bounded& x);
Bounded sin(const Bounded& x);
Bounded cos(const Bounded& x);
Bounded tanh(const Bounded& x);
/// The forms of core/forms.hpp: each bound holds for every evaluation named there.
Bounded quotient(const Bounded& x, const Bounded& y);
Bounded reciprocal_sqrt(const Bounded& x);
Bounded product(const Bounded& a, const Bounded& b, const Bounded& c);
Bounded sigmoid(const Bounded& x);
Bounded sigmoid_complement(const Bounded& x);
Bounded softmax_term(const Bounded& x, const Bounded& maximum, double rescalings);
Bounded scaled_difference(const Bounded& r, const Bounded& a, const Bounded& b);
inline bool operator<(const Bounded& x, const Bounded& y) { return x.value < y.value; }
inline bool operator>(const Bounded& x, const Bounded& y) { return y < x; }
inline bool operator<=(const Bounded& x, const Bounded& y) { return x.value <= y.value; }
inline bool operator>=(const Bounded& x, const Bounded& y) { return y <= x; }
/// Returns x rounded to nearest in the storage format f16 or bf16.
Bounded stored(DType dtype, const Bounded& x);
/// |max(x^, y^) - max(x, y)| <= the larger error.
Bounded maximum(const Bounded& x, const Bounded& y);

namespace detail {
Product special_product(const Bounded& x, const Bounded& y);
}

inline Product operator*(const Bounded& x, const Bounded& y) {
  const double value = x.value * y.value;
  if (!(std::fabs(value) <= DBL_MAX)) [[unlikely]]
    return detail::special_product(x, y);
  const double ax = std::fabs(x.value), ay = std::fabs(y.value);
  return {value,
          ax * y.error + ay * x.error + x.error * y.error,
          ax * y.statistical + ay * x.statistical + x.statistical * y.statistical,
          x.may_overflow || y.may_overflow,
          ax + x.error,
          ay + y.error};
}

}  // namespace assay
