// Running error analysis of single operations, and the order-free bound of sums.
//
// Worst case. Let t_1..t_n be the terms, S = sum |t_p|, E the sum of their errors (inherited from the inputs,
// and u |t_p| + 2^-150 for the rounding of each product), F = floor(n / 2) * 2^-126 where partial sums may be
// flushed, otherwise 0. A kernel adds computed terms t_p + e_p with |e_p| <= E_p along some tree. One addition
// s = l + r to nearest errs by at most min(u |l + r|, |l|, |r|), since l and r are floats themselves. By
// induction, a tree of m additions over terms whose magnitudes sum to S' errs by at most m u S':
// let l and r be exact sums of magnitudes L and R, with m_l and m_r additions below, so that the computed ones
// are at most L (1 + m_l u) and R (1 + m_r u).
//   - R <= u L: the last error is at most R (1 + m_r u) <= u L + m_r u R, and m_r u R was counted once, so the
//     total is at most u L + m_l u L + 2 m_r u R <= (m_l + m_r + 1) u (L + R) since 2 R <= L + R. L <= u R: likewise.
//   - otherwise u m_l u L <= u m_l R and u m_r u R <= u m_r L, so the last error is at most
//     u (L + R) + u m_l R + u m_r L; adding m_l u L + m_r u R gives (m_l + m_r + 1) u (L + R).
// (Jeannerod & Rump, SIAM J. Matrix Anal. Appl. 34 (2013): no (1 - n u) in the denominator.) A fused
// multiply-add does not round its product, so a leaf r need not be a float. Only the case L <= u R used that r is a
// float, and there u (L + m_l u L + R) <= u (L + R) + m_l u R. Such a step saves the u |t_p| that E includes. A flush
// is the exact addition of a further term of at most 2^-126, and replaces two nonzero numbers by one zero (E includes
// the flush of a product, and a sum with zero is not a new number): n terms allow floor(n / 2).
// So, with S' = S + E + F,
//   error = (n - 1) u S' + E + F.
// Rounding toward zero lacks the min(): there growth is g / (1 - g), where g = 2u (n - 1). A block operation (b
// products and the accumulator truncated at the largest exponent, their sum truncated to a float) costs no more than
// b such additions. Truncating a product at another's exponent is truncating it to a float, 2u |t_p|, which E holds,
// and then once more. Of b + 1 floats, let 2^e be the largest exponent; that float loses nothing, each other less
// than 2u 2^e, and the sum, if it lies in the x-th binade above, less than (2^x - 1) 2u 2^e. Their magnitudes sum to
// at least 2^x 2^e, and b + 2^x - 1 <= b 2^x. Without an accumulator the first block saves one, as the first term of
// a sum does. tests/numbers reaches this bound. The exponent of a product is the sum of its factors', and a subnormal
// factor counts with the smallest normal number's (seen on H100 with f16 and bf16; products of zero count nothing): its
// product may lie far below the 2^e that others are aligned to. All of this holds where such a product counts in S with
// the smallest normal number f in the place of the factor, max(|x|, f) max(|y|, f): its magnitude is at least 2^e then,
// and it loses nothing itself. A kernel that accumulates wider and rounds once errs by u |s| <= u S, which E includes
// (or n = 1).
//
// Terms of zero. A term that is 0 without error is computed as 0, and adding 0 rounds nothing, in blocks too: n does
// not count it. A term near 0, to nearest: with a float l, l + r errs by at most |r|, since l is at most that far from
// l + r. Let m' of the n terms be small (kSmall), Z the sum of their magnitudes and errors, m = n - m', and n u <= 1/4.
// The additions are
//   - additions within subtrees of small terms. They err by n u Z <= Z / 4 together, as above, and their sums are at
//     most (1 + n u) Z;
//   - additions of such a subtree to a subtree with another term. They add at most (1 + n u) Z and err by as much,
//     three times as much if the result is rounded twice (a narrow accumulator), and by u |t_p| more, which E includes,
//     if the other operand is an unrounded product: together at most 3 (1 + n u) Z <= 3.75 Z;
//   - m - 1 further additions. For these, the errors of the first two kinds are exact additions of terms that sum
//     to at most 4 Z.
//   error = (m - 1) u (S' + 4 Z) + E + F + 4 Z
// holds as well (the code uses 5 Z for 4 Z), and the smaller bound is used. A long sum with few large terms is bounded
// as tightly as a sum of these few. Truncation has no such bound: the smallest negative term lowers a float by a whole
// unit in its last place.
//
// Three products of TF32 for one (tf32x3): x = h + l + r, h the upper 11 bits of x and l those of x - h, both
// truncated, so that |l| < 2^-10 |x| and |r| < 2^-20 |x|, or 2^-136 where l is subnormal. x y - (h h' + h l' + l h') =
// l l' + r y + (x - r) r' is below (3 + 2^-9) 2^-20 |x y| <= 2 v |x y| for v = 2^-19: each factor counts as rounded by
// v. n terms become 3n, whose magnitudes sum to at most (1 + 2^-9 + 2^-19) S. Parts of one number have one sign: no sum
// of them overflows where the number does not.
//
// Statistical. Assume that signs of terms are independent and fair (products of Gaussian inputs), and that
// rounding errors to nearest are mean-zero given the earlier ones (Higham & Mary, SIAM J. Sci. Comput. 41
// (2019)). Let Q^2 = sum t_p^2, s_T the exact sum at node T of the tree and Q_T^2 its sum of squares.
//   - E exp(x s_T^2 / Q_T^2) <= (1 - 2x)^(-1/2) for x < 1/2 (signs are sub-Gaussian). sum_T s_T^2 over sum_T Q_T^2
//     is a weighted mean of s_T^2 / Q_T^2, so by Jensen's inequality the same holds of it, and by Markov's with
//     x = (1 - lambda^-2) / 2: P(sum_T s_T^2 > lambda^2 sum_T Q_T^2) <= lambda sqrt(e) exp(-lambda^2 / 2). No union
//     over nodes is needed, for any tree. sum_T Q_T^2 <= n Q^2.
//   - Computed partial sums differ from s_T by at most `error`, so the root of the sum of their squares is at
//     most sqrt(n) (lambda Q + error). The rounding at T is at most u times that at T: by Azuma's inequality their
//     sum exceeds lambda u sqrt(n) (lambda Q + error) with probability at most 2 exp(-lambda^2 / 2).
//   - Inherited errors of terms count in full: E + F. (The rounding of products could be added in quadrature, but
//     u S <= u sqrt(n) Q is at most 1 / lambda^2, 2%, of the rest.)
//   statistical = min(error, lambda u sqrt(n) (lambda Q + error) + E + F).
//   - |s_T| <= S for any signs, so S may stand for lambda Q where it is smaller, and must where the terms have one
//     sign (squares, exponentials): they are no fair draw, and every partial sum grows.
//   - Terms that are nearly equal are rounded alike, one after the other: their errors are not mean-zero. A partial sum
//     has units of 2u S in its last place at most. A term's place among these units is as good as uniform where terms
//     have a standard deviation of half a unit or more (exp(-2 pi^2 / 4) = 0.7% of the first harmonic is left); where
//     they have less, statistical = error.
// lambda = 7.5: 7.5e-12 + 1.2e-12 < 9e-12 false alarms per element.
//
// Normal range. Rounding commutes with multiplication by a power of two, unless one of the two numbers is below the
// smallest normal number f of the format, where digits are lost (or all of them, by a flush). Let the terms of a sum
// have p digits, products 2p. If every term is at least t, every partial sum is a multiple of 2^(1 - 2p) t, and so is
// its rounded value. A result of q digits represents every multiple of 2^(1 - q) f, subnormal or not: nothing is lost
// for t >= 2^(2p - q) f, or with flushed subnormals for t >= 2^(2p) f. The same limit applies to products, quotients
// and functions. Sums of floats need no limit: subnormal sums are exact.
#include "core/bounded.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>

#include "core/half.hpp"
#include "core/rounded.hpp"

namespace assay {

using namespace detail;

namespace {

constexpr double kLambda = 7.5;
struct Range {
  double smallest_normal, largest;
};

Range range_of(Format format) {
  switch (format) {
    case Format::f32: return {FLT_MIN, FLT_MAX};
    case Format::tf32: return {FLT_MIN, (2 - 0x1p-10) * 0x1p127};
    case Format::f16: return {0x1p-14, 65504};
    case Format::bf16: return {FLT_MIN, (2 - 0x1p-7) * 0x1p127};
    case Format::tf32x3: return {0x1p-116, FLT_MAX};  // the lower part is subnormal below this
  }
  return {};
}

double unit_of(Format format, Rounding rounding) {
  const double nearest = std::ldexp(1.0, -significand_bits(format));
  return rounding == Rounding::nearest ? nearest : 2 * nearest;
}

/// Returns the unit of one rounding of a result. Narrow accumulators are emulated by rounding a float32 result again:
/// the first rounding costs 2^-24, and another 2^-24 because it can move a value near a tie to the wrong side.
double result_unit(Format format, Rounding rounding) {
  return unit_of(format, rounding) + (format == Format::f32 ? 0 : 0x1p-23) + kDoubleSlack;
}

}  // namespace

Roundings::Roundings(const Arithmetic& arithmetic, bool normal_range) : of(arithmetic) {
  const Range inputs = range_of(of.inputs), results = range_of(of.accumulator);
  const Rounding rounding = of.block > 1 ? Rounding::toward_zero : of.accumulation;  // blocks truncate
  unit = result_unit(of.accumulator, rounding);
  division = std::max(unit, accuracy(of.functions, Function::divide).relative(0) + kDoubleSlack);
  input_unit = of.inputs == Format::f32 ? 0 : unit_of(of.inputs, of.input_rounding);
  input_floor = inputs.smallest_normal;
  input_largest = inputs.largest;
  aligned_floor = of.block > 1 ? std::max(input_floor, range_of(of.aligned).smallest_normal) : 0;
  flush = of.flushes_subnormals ? results.smallest_normal : 0;
  underflow = of.flushes_subnormals ? flush : unit * results.smallest_normal;
  if (of.inputs == Format::tf32x3) underflow *= 3;
  largest = results.largest;
  nearest = rounding == Rounding::nearest;
  narrow = of.accumulator != Format::f32;
  saturates = !nearest;
  if (!normal_range) return;
  const auto digits = [](Format format) { return significand_bits(format == Format::tf32x3 ? Format::f32 : format); };
  const int longest = std::max(digits(of.inputs), digits(of.accumulator));
  least = std::ldexp(results.smallest_normal, 2 * longest - (of.flushes_subnormals ? 0 : digits(of.accumulator)));
}

namespace {

thread_local bool normal_range = false;

}  // namespace

NormalRangeScope::NormalRangeScope() {
  normal_range = true;
  in_force = nullptr;
}
NormalRangeScope::~NormalRangeScope() {
  normal_range = false;
  in_force = nullptr;
}

const Roundings& Roundings::work_out() {
  // The default is worked out like any other: constants of its own would make a bound depend on what had run before.
  thread_local Roundings cached{Arithmetic{}};
  const Arithmetic& now = current_arithmetic();
  if (!(cached.of == now) || (cached.least > 0) != normal_range) [[unlikely]]
    cached = Roundings(now, normal_range);
  in_force = &cached;
  return cached;
}

double Roundings::growth(double n) const {
  const bool parts = of.inputs == Format::tf32x3;
  const double g = std::max((parts ? 3 * n : n) - 1, 0.0) * unit * (parts ? 1 + 0x1p-8 : 1);
  if (nearest) return g;
  return g < 1 ? g / (1 - g) : kInfinity;
}

// Returns the error of adding a float32 term to a narrow accumulator. Subnormals of a narrow format are not multiples
// of float32's smallest number: rounding a sum or a function value to one of them loses up to half a last place,
// `underflow`. Sums of the accumulator's own numbers are exact there. A term outside the accumulator's format is
// rounded on entry. A product holds this rounding already.
double Roundings::taken_in(const Bounded& term) const {
  if (!(std::fabs(term.value) <= DBL_MAX) || (term.error == 0 && held_exactly(term.value, *this))) return 0;
  return unit * (std::fabs(term.value) + term.error) + underflow;
}

Bounded::Bounded(double constant) : value(constant) {
  if (static_cast<double>(static_cast<float>(constant)) != constant && std::fabs(constant) <= FLT_MAX)
    error = statistical = 0x1p-24 * std::fabs(constant) + 0x1p-150;
}

Bounded::Bounded(const Product& p) {
  // The product of two floats is exact in double. If it is a float, every machine computes exactly that float.
  if (p.error == 0 && !p.may_overflow && held_exactly(p.value, Roundings::current())) value = p.value;
  else *this = in_range(rounded(p.value, p.error, p.statistical, Roundings::current().underflow, p.may_overflow));
}

namespace {

/// Returns whether x is representable in the format, so that rounding leaves it unchanged.
bool held_by(Format format, float x) {
  switch (format) {
    case Format::f32: return true;
    case Format::tf32:
    case Format::tf32x3: return (std::bit_cast<std::uint32_t>(x) & 0x1fffu) == 0;
    case Format::f16: return widen(to_half(x)) == x;
    case Format::bf16: return widen(to_bfloat16(x)) == x;
  }
  return false;
}

bool is_float(double x) { return static_cast<double>(static_cast<float>(x)) == x; }

/// Returns whether `sum`, which is x + y rounded to double, is exact (Knuth's two-sum).
bool exact_sum(double x, double y, double sum) {
  const double of_y = sum - x;
  return (x - (sum - of_y)) + (y - of_y) == 0;
}

}  // namespace

bool detail::held_exactly(double value, const Roundings& r) {
  return is_float(value) && std::fabs(value) <= r.largest && held_by(r.of.accumulator, static_cast<float>(value)) &&
         !(r.of.flushes_subnormals && std::fabs(value) < r.flush && value != 0);
}

Bounded Bounded::input(float x) {
  const Roundings& r = Roundings::current();
  const double magnitude = std::fabs(static_cast<double>(x));
  if (!(magnitude <= FLT_MAX)) return {x, 0, 0, false};
  const bool held = !r.of.flushes_subnormals && held_by(r.of.inputs, x);
  if ((!held || r.aligned_floor > 0) && r.leaves_inputs(magnitude, 0)) return {x, kInfinity, kInfinity, false};
  if (held) return {x, 0, 0, false};
  const double flushed = r.of.flushes_subnormals && magnitude < r.input_floor ? magnitude : 0;
  const double error =
      r.input_unit * std::max(magnitude, r.input_unit > 0 && magnitude > 0 ? r.input_floor : 0) + flushed;
  return {x, error, error, magnitude + error > r.input_largest};
}

Bounded Terms::sum(Terms t, const Roundings& r) {
  const double inherited = t.error + r.flush * std::floor(t.count / 2);
  const double slack = (1 + kDoubleSlack) * (1 + t.count * 0x1p-52);
  const double evaluation = t.count * 0x1p-53 * t.magnitude;
  // Error bound of a sum with `rounded` additions; `aside` is the summed reach of the small terms.
  const auto worst_of = [&](double rounded, double aside) {
    const double growth = r.growth(rounded) * (t.magnitude + inherited + 5 * aside);
    return finite_or_infinite((growth + inherited + 5 * aside + evaluation) * slack);
  };
  const bool aside = r.nearest && t.small_count > 0 && r.growth(t.count) <= 0.25;
  const double large = t.count - t.small_count;
  if (r.least > 0 && t.least < r.least) return anything();
  const double worst = aside ? std::min(worst_of(t.count, 0), worst_of(large, t.small)) : worst_of(t.count, 0);
  const bool overflows = t.may_overflow || !(t.magnitude + worst <= r.largest);
  if (!(std::fabs(t.total) <= DBL_MAX)) {
    // The magnitudes of finite terms sum to more than the largest double. If the errors are at most a quarter of that,
    // some term exceeds every float for any number of terms. With larger errors all terms may be small.
    if (!(t.magnitude <= DBL_MAX) && !(t.error <= DBL_MAX / 4)) return anything();
    return {t.total, 0, 0, overflows && !std::isnan(t.total)};
  }
  if (overflows && r.saturates) return {t.total, kInfinity, kInfinity, true};
  double statistical = worst;
  const bool one_sign = std::fabs(t.total) == t.magnitude;
  const double fair = one_sign ? t.magnitude : std::min(kLambda * std::sqrt(t.squares), t.magnitude);
  const double spread = fair + worst, mean = t.total / t.count, half_unit = r.unit * spread;
  const bool vary = t.squares / t.count - mean * mean >= half_unit * half_unit;
  if (r.nearest && vary) {
    const auto likely = [&](double rounded, double small) {
      return (kLambda * r.unit * std::sqrt(rounded) * (spread + 5 * small) + inherited + 5 * small + evaluation) *
             slack;
    };
    statistical = std::min(worst, likely(t.count, 0));
    if (aside) statistical = std::min(statistical, likely(large, t.small));
  }
  return {t.total, worst, statistical, overflows};
}

Bounded operator+(const Bounded& x, const Bounded& y) {
  const double sum = x.value + y.value;
  if (std::isinf(sum) && std::isfinite(x.value) && std::isfinite(y.value) && !(x.error + y.error <= DBL_MAX / 4))
    return anything();
  // If the sum of two floats is a float, every machine computes exactly that float.
  if (x.error == 0 && y.error == 0 && !x.may_overflow && !y.may_overflow && is_float(x.value) && is_float(y.value) &&
      exact_sum(x.value, y.value, sum) && held_exactly(sum, Roundings::current()))
    return {sum, 0, 0, false};
  const Roundings& r = Roundings::current();
  return rounded(sum, x.error + y.error, x.statistical + y.statistical, r.narrow ? r.underflow : r.flush,
                 x.may_overflow || y.may_overflow);
}

Bounded operator-(const Bounded& x) { return {-x.value, x.error, x.statistical, x.may_overflow}; }
Bounded operator-(const Bounded& x, const Bounded& y) { return x + -y; }

Bounded maximum(const Bounded& x, const Bounded& y) {
  const Bounded& larger = x.value < y.value ? y : x;
  return {larger.value, std::max(x.error, y.error), std::max(x.statistical, y.statistical),
          x.may_overflow || y.may_overflow};
}

namespace detail {

Product special_product(const Bounded& x, const Bounded& y) {
  const double value = x.value * y.value;
  if (std::isfinite(x.value) && std::isfinite(y.value)) {
    // The product exceeds the largest double, and its error may be as large.
    const double least = std::max(std::fabs(x.value) - x.error, 0.0) * std::max(std::fabs(y.value) - y.error, 0.0);
    if (!(least > FLT_MAX)) return {0, kInfinity, kInfinity, true};
  }
  const bool uncertain = x.may_overflow || y.may_overflow || sign_uncertain(x) || sign_uncertain(y);
  // Infinity times a number that rounding made zero gives NaN or an infinity of either sign.
  const bool by_rounding = uncertain && std::isnan(value) && !std::isnan(x.value) && !std::isnan(y.value);
  return {by_rounding ? kInfinity : value, 0, 0, uncertain};
}

}  // namespace detail

}  // namespace assay
