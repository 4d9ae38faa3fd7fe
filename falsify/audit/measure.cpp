// Terms are powers of two and short sums of them, so that the result identifies the one rounding under test. Magnitudes
// fit every storage format: B = 2^10, masks of 2^15, and units down to 2^-24, the least of f16.
#include "falsify/audit/measure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

namespace assay::falsify::audit {
namespace {

constexpr float kBase = 0x1p10F, kMask = 0x1p15F;
constexpr int kFloatBits = 24;

float power(int exponent) { return std::ldexp(1.0F, exponent); }

int bits_of(DType dtype) { return dtype == DType::f16 ? 11 : dtype == DType::bf16 ? 8 : kFloatBits; }

std::string shown_as(std::initializer_list<Term> terms, double result) {
  std::string text;
  for (const Term& t : terms)
    text += fmt::format("{}{}{} at {}", text.empty() ? "" : ", ", t.left,
                        t.right != 1 ? fmt::format(" times {}", t.right) : "", t.at);
  return fmt::format("terms {} gave {}", text, result);
}

template <class T>
void none(Property<T>& property, std::string_view why) {
  if (!property.value && property.why_not.empty()) property.why_not = why;
}

/// Gives this reason to every property that has not been measured.
void none(Measured& m, std::string_view why) {
  none(m.order, why), none(m.accumulator_bits, why), none(m.rounding, why), none(m.input_bits, why);
  none(m.input_rounding, why), none(m.fused, why), none(m.flushes_inputs, why), none(m.flushes_products, why);
  none(m.flushes_results, why);
}

/// Classifies the rounding from B plus 3/4, 1/4 and 1/2 of the last place of B, and from the same with the other sign.
SeenRounding rounding_of(double three_quarters, double quarter, double half, double mirrored, double odd_half) {
  if (three_quarters == 0 && mirrored == 0) return SeenRounding::toward_zero;
  if (three_quarters == 1 && quarter == 1 && mirrored == 1) return SeenRounding::away;
  if (three_quarters != 1 || quarter != 0 || mirrored != 1) return SeenRounding::other;
  return half == 0 && odd_half == 2 ? SeenRounding::nearest_even : SeenRounding::nearest;
}

/// Measures sums of signed terms, whose values can be read from the result.
class Signed {
 public:
  explicit Signed(Prober& probe) : probe_(probe), n_(probe.sum().count), two_factors_(probe.sum().right.tensor >= 0) {}

  Measured measure() {
    if (!readable() || rescaled()) return m_;
    accumulator();
    order();
    rounding();
    inputs();
    fused();
    flushes();
    none(m_, n_ == 1 ? "one term, nothing is added" : "not seen in this sum");
    return m_;
  }

 private:
  /// True if the result shows a sum at all.
  bool readable() {
    for (Index p : {Index{0}, n_ - 1}) {
      const double seen = probe_({{p, kBase}});
      if (seen == kBase) continue;
      none(m_, "the result does not show the sum: " + shown_as({{p, kBase}}, seen));
      return false;
    }
    return true;
  }

  /// True if partial results are multiplied by a factor that is no power of two: a term of few bits comes back as
  /// another number. The rounding of additions or inputs cannot be isolated then, since a product may round too.
  bool rescaled() {
    for (int k = 0; k < kMantissas; ++k) {
      const Index p = k * (n_ / 3 + 1) % n_;
      const float v = kBase * (1 + static_cast<float>(k) / kMantissas);
      const double seen = probe_({{p, v}});
      if (seen == v) continue;
      none(m_, "partial results are rescaled: " + shown_as({{p, v}}, seen));
      return true;
    }
    return false;
  }

  /// Evaluates B + e - B for several orders of the three.
  bool holds(int bits) {
    const float e = std::ldexp(kBase, -bits);
    const std::array<std::array<Index, 3>, 3> places{{{0, 1, 2}, {0, n_ / 2, n_ - 1}, {n_ - 1, n_ - 2, 0}}};
    for (const auto& [a, b, c] : places) {
      if (a == b || b == c || a == c) continue;
      for (const auto& [i, j, k] : {std::array{a, b, c}, std::array{a, c, b}, std::array{b, c, a}}) {
        const double seen = probe_({{i, kBase}, {j, e}, {k, -kBase}});
        if (seen == e) continue;
        m_.accumulator_bits.probe = shown_as({{i, kBase}, {j, e}, {k, -kBase}}, seen);
        return false;
      }
    }
    return true;
  }

  void accumulator() {
    if (n_ == 1) return none(m_.accumulator_bits, "one term, nothing is added");
    if (n_ == 2) return none(m_.accumulator_bits, "two terms: their sum is the result");
    const int most = std::min(bits_of(probe_.stored_as(probe_.sum().left)), 24) == 11 ? 34 : 60;
    int bits = 1;
    while (bits < most && holds(bits)) ++bits;
    m_.accumulator_bits.value = bits;
  }

  void order() {
    if (n_ < 3) return none(m_.order, n_ == 1 ? "one term, nothing is added" : "two terms have one order");
    const int span = *m_.accumulator_bits.value + static_cast<int>(std::bit_width(static_cast<std::uint64_t>(n_))) + 2;
    const float unit = std::ldexp(kMask, -span);
    const bool half = probe_.stored_as(probe_.sum().left) == DType::f16;
    if (unit < (half ? 0x1p-24F : 0x1p-126F)) return none(m_.order, "no term is small enough to vanish beside another");
    std::string strange;
    const auto tree = reveal(n_, [&](Index i, Index j) {
      const double left = probe_({{i, kMask}, {j, -kMask}}, unit) / static_cast<double>(unit);
      if (left != std::floor(left) || left < 0 || left > static_cast<double>(n_ - 2)) {
        strange = fmt::format("{} at {} and {} at {} among units of {} left {} units", kMask, i, -kMask, j, unit, left);
        return n_;
      }
      return n_ - static_cast<Index>(left);
    });
    if (!strange.empty()) order_toward_zero(strange);
    else if (tree) m_.order.value = *tree;
    else none(m_.order, "the counts are those of no tree: the order depends on the values, or on the run");
  }

  /// Under rounding toward zero masking fails (-M + unit != -M). Instead adds two terms of 5/8 ulp(B): B changes only
  /// if they were added to each other first.
  void order_toward_zero(const std::string& strange) {
    const int bits = *m_.accumulator_bits.value;
    if (bits > bits_of(probe_.stored_as(probe_.sum().result))) return none(m_.order, "no count of terms: " + strange);
    const float small = 0.625F * std::ldexp(kBase, 1 - bits);
    const auto tree = reveal(n_, [&](Index i, Index j) {
      Index before = 0;
      for (Index k = 0; k < n_; ++k)
        before += k != i && k != j && probe_({{i, small}, {j, small}, {k, kBase}}) != static_cast<double>(kBase);
      return n_ - before;
    });
    if (tree) m_.order.value = *tree;
    else none(m_.order, "no count of terms: " + strange);
  }

  /// Returns terms i and j that are added before k.
  std::array<Index, 3> pair_before() const {
    for (Index j = 1; j < n_; ++j)
      for (Index k = 1; k < n_; ++k)
        if (k != j && under(*m_.order.value, 0, j) < under(*m_.order.value, 0, k)) return {0, j, k};
    return {0, 1, 2};  // all added at once
  }

  /// Returns the change of a (of B's magnitude) by x, in units of B's last place; `last` is the accumulator's.
  double added(float a, float x, float last) {
    if (n_ == 1) return 0;
    if (n_ == 2)
      return (probe_({{0, a}, {1, x}}) - static_cast<double>(std::copysign(kBase, a))) / static_cast<double>(last);
    const auto [i, j, k] = pair_before();
    return probe_({{i, a}, {j, x}, {k, -std::copysign(kBase, a)}}) / static_cast<double>(last);
  }

  void rounding() {
    if (n_ == 1) return two_factors_ ? product_rounding() : none(m_.rounding, "one term, nothing is rounded");
    const int result = bits_of(probe_.stored_as(probe_.sum().result));
    const int bits = n_ == 2 ? result : *m_.accumulator_bits.value;
    if (n_ > 2 && !m_.order.value) return none(m_.rounding, "the order is not known");
    if (bits > 31) return none(m_.rounding, "no addition was seen to be rounded");
    const float last = std::ldexp(kBase, 1 - bits);
    const double up = added(kBase, 0.75F * last, last), down = added(kBase, 0.25F * last, last);
    const double half = added(kBase, 0.5F * last, last), mirrored = -added(-kBase, -0.75F * last, last);
    // Only inputs with enough bits hold B plus its last place.
    const bool held =
        bits <= bits_of(probe_.stored_as(probe_.sum().left)) && probe_({{0, kBase + last}}) == kBase + last;
    const double odd = held ? added(kBase + last, 0.5F * last, last) : 0;
    m_.rounding.value = rounding_of(up, down, half, mirrored, odd);
    m_.rounding.probe =
        fmt::format("{} plus 3/4, 1/4, 1/2 of its last place {} gave {}, {}, {} of it", kBase, last, up, down, half);
  }

  /// The product (1 + 2^-12)(1 + 3 2^-13) ends with 3/4 of a last place.
  void product_rounding() {
    if (bits_of(probe_.stored_as(probe_.sum().left)) < kFloatBits)
      return none(m_.rounding, "products of its inputs are exact");
    const float size = power(probe_.sum().lift);
    const float a = (1 + 0x1p-12F) * size, b = 1 + 0x3p-13F;
    const double exact = static_cast<double>(a) * b, last = 0x1p-23 * size;
    const double seen = probe_({{0, a, b}}), error = (seen - exact) / last;
    m_.rounding.value = error == 0.25    ? SeenRounding::nearest
                        : error == -0.75 ? SeenRounding::toward_zero
                                         : SeenRounding::other;
    m_.rounding.probe = shown_as({{0, a, b}}, seen);
  }

  /// Returns the part of v beyond B; v has B's magnitude.
  double beyond(float v, bool right) {
    const Term term =
        right ? Term{0, std::ldexp(1.0F, probe_.sum().lift), v / std::ldexp(1.0F, probe_.sum().lift)} : Term{0, v, 1};
    const float base = std::exp2(std::floor(std::log2(v)));
    if (n_ == 1) return probe_({term}) - static_cast<double>(base);
    return probe_({term, {1, -base}});
  }

  /// Returns the number of a factor's bits that its storage holds and the result can show.
  int most_shown(bool right) const {
    return std::min(bits_of(probe_.stored_as(right ? probe_.sum().right : probe_.sum().left)),
                    n_ < 3 ? bits_of(probe_.stored_as(probe_.sum().result)) : kFloatBits);
  }

  int bits_held(bool right) {
    const float base = std::max(kBase, power(probe_.sum().lift));
    const int most = most_shown(right);
    int bits = 1;
    while (bits < most) {
      const float v = base * (1 + power(-bits));
      const double seen = beyond(v, right);
      if (seen != static_cast<double>(v - base)) {
        m_.input_bits.probe = fmt::format("{} less {} gave {}", v, base, seen);
        break;
      }
      ++bits;
    }
    return bits;
  }

  void inputs() {
    const int left = bits_held(false), right = two_factors_ ? bits_held(true) : left;
    const int bits = std::min(left, right);
    m_.input_bits.value = bits;
    const int most = two_factors_ ? std::min(most_shown(false), most_shown(true)) : most_shown(false);
    m_.bits_limited = bits >= most || bits >= m_.accumulator_bits.value.value_or(kFloatBits);
    if (m_.bits_limited) return none(m_.input_rounding, "inputs are not seen to be rounded");
    const float base = std::max(kBase, power(probe_.sum().lift)), last = std::ldexp(base, 1 - bits);
    const double up = beyond(base + 0.75F * last, left > right) / static_cast<double>(last);
    m_.input_rounding.value = up == 1   ? SeenRounding::nearest
                              : up == 0 ? SeenRounding::toward_zero
                                        : SeenRounding::other;
    m_.input_rounding.probe = fmt::format("3/4 of the last place became {} of it", up);
  }

  /// Measures x x - fl(x x), which is zero if the product was rounded first.
  void fused() {
    const bool by_param = probe_.sum().param >= 0;
    if (!two_factors_ && !by_param) return none(m_.fused, "terms are no products");
    if (n_ < 2) return none(m_.fused, "one term, nothing is added");
    if (m_.input_bits.value.value_or(0) < 13) return none(m_.fused, "products of its inputs are exact");
    const float x = 1 + 0x1p-12F, square = 1 + 0x1p-11F;
    m_.fused.value = false;
    for (const auto& [i, j] : {std::pair<Index, Index>{0, 1},
                               {1, 0},
                               {0, n_ - 1},
                               {n_ - 1, 0},
                               {n_ / 2, n_ / 2 + 1},
                               {n_ / 2 + 1, n_ / 2}}) {
      if (i == j || j >= n_ || i >= n_ || (by_param && j != 1)) continue;
      const double seen = probe_({{i, -square}, {j, x, x}});
      if (seen == 0 && *m_.fused.value) continue;
      m_.fused.probe = shown_as({{i, -square}, {j, x, x}}, seen);
      m_.fused.value = *m_.fused.value || seen != 0;
    }
  }

  void flushes() {
    const Sum& sum = probe_.sum();
    if (!sum.no_subnormals.empty())
      return none(m_.flushes_inputs, sum.no_subnormals), none(m_.flushes_products, sum.no_subnormals),
             none(m_.flushes_results, sum.no_subnormals);
    if (probe_.stored_as(sum.left) == DType::f16 || probe_.stored_as(sum.result) == DType::f16) {
      const std::string why = "subnormal numbers of f16 are normal ones of the accumulator";
      return none(m_.flushes_inputs, why), none(m_.flushes_products, why), none(m_.flushes_results, why);
    }
    if (n_ > 1 && probe_({{0, 0x1p-60F}}) == 0) {
      const std::string why = "numbers vanish that are normal ones of float32: the accumulator has a shorter range";
      return none(m_.flushes_inputs, why), none(m_.flushes_products, why), none(m_.flushes_results, why);
    }
    const auto look = [&](Property<bool>& property, std::initializer_list<Term> terms, double without) {
      const double seen = probe_(terms);
      property.value = seen == without;
      property.probe = shown_as(terms, seen);
    };
    const int up = std::max(0, -std::ilogb(std::fabs(sum.scale)));
    const bool narrow = probe_.stored_as(sum.result) == DType::bf16;
    if (n_ == 1) {
      if (two_factors_ && sum.lift == 0) look(m_.flushes_inputs, {{0, 0x1p-130F, 0x1p40F}}, 0);
      look(m_.flushes_results, {{0, 0x1p-130F}}, 0);
      if (*m_.flushes_results.value) none(m_.flushes_inputs, "what became of the result hides it");
      else
        none(m_.flushes_inputs, "kept in the result"), m_.flushes_inputs.why_not.clear(),
            m_.flushes_inputs.value = false;
      return none(m_.flushes_products, "nothing is multiplied and added");
    }
    look(m_.flushes_results, {{0, power(-125 + up) * (1 + 0x1p-5F)}, {1, -power(-125 + up)}}, 0);
    if (two_factors_) {
      look(m_.flushes_inputs, {{0, 0x1p-130F, 0x1p40F}}, 0);
      Property<bool> other;
      look(other, {{0, 0x1p40F, 0x1p-130F}}, 0);
      if (*other.value) m_.flushes_inputs = other;
    } else if (narrow || m_.accumulator_bits.value.value_or(kFloatBits) < 8 + up) {
      none(m_.flushes_inputs, "the result is too short to show it");
    } else {
      look(m_.flushes_inputs, {{0, power(-124 + up)}, {1, 0x1p-130F}}, static_cast<double>(power(-124 + up)));
    }
    if (!two_factors_) return none(m_.flushes_products, "terms are no products");
    if (narrow || up > 0) return none(m_.flushes_products, "the result is too short to show it");
    look(m_.flushes_products, {{0, 0x1p-126F}, {1, 0x1p-66F, 0x1p-65F}}, 0x1p-126);
  }

  Prober& probe_;
  Index n_;
  bool two_factors_;
  Measured m_;
};

/// Measures sums of nonnegative terms, whose result shows only whether the sum has changed. Two small terms change a
/// much larger third if they are added to each other first; one by one they do not.
class Unsigned {
 public:
  Unsigned(Prober& probe, Prober& exact) : probe_(probe), exact_(exact), n_(probe.sum().count) {}

  Measured measure() {
    if (n_ > 1) {
      accumulator();
      if (m_.accumulator_bits.value) rounding(), order();
    }
    inputs();
    flushes();
    none(m_, n_ == 1 ? "one term, nothing is added" : "the result shows only whether the sum has changed");
    return m_;
  }

 private:
  static bool visible(Prober& probe, std::initializer_list<Term> terms, float large, Index at) {
    return std::bit_cast<std::uint32_t>(probe.shown(terms)) != std::bit_cast<std::uint32_t>(probe.shown({{at, large}}));
  }
  bool visible(std::initializer_list<Term> terms, float large, Index at) { return visible(probe_, terms, large, at); }

  /// Candidates for the large term: 1 for exponentials; for squares, a value whose last place shows in the result.
  std::vector<float> candidates() const {
    if (probe_.sum().terms == Terms::exponentials) return {1.0F};
    std::vector<float> list;
    for (float x : {1.5F, 1.25F, 1.625F, 1.75F, 1.375F, 1.875F, 1.125F, 1.4375F}) list.push_back(x * x * 0x1p20F);
    return list;
  }

  /// Returns the largest k such that a term 2^-k as large as another shows beside it, and the larger term.
  std::pair<int, float> finest(Prober& probe) const {
    std::pair<int, float> best{0, 1.0F};
    for (float large : candidates()) {
      for (int bits = kFloatBits - 1; bits > best.first; --bits) {
        const float small = power(std::ilogb(large) - bits);
        if (visible(probe, {{0, large}, {n_ / 2, small}}, large, 0) &&
            visible(probe, {{n_ - 1, large}, {0, small}}, large, n_ - 1))
          best = {bits, large};
      }
      if (best.first == kFloatBits - 1) break;
    }
    return best;
  }

  void accumulator() {
    const auto [bits, large] = finest(probe_);
    if (bits == 0) return none(m_, "no term shows in the result beside another");
    large_ = large;
    m_.accumulator_bits.value = bits + 1;
    m_.accumulator_bits.probe = fmt::format("{} beside {} shows", power(std::ilogb(large) - bits), large);
    // The exact result shows its last bit by a hair, which a rounding before the one to 16 bits may take away.
    if (bits_of(probe_.stored_as(probe_.sum().result)) < kFloatBits)
      m_.accumulator_limited = bits + 1 >= finest(exact_).first;
  }

  float last() const { return power(std::ilogb(large_) + 1 - *m_.accumulator_bits.value); }

  void rounding() {
    if (*m_.accumulator_bits.value < kFloatBits) return none(m_.rounding, "the result is too short to show it");
    const bool most = visible({{0, large_}, {1, 0.75F * last()}}, large_, 0);
    const bool few = visible({{0, large_}, {1, 0.25F * last()}}, large_, 0);
    // Rounding away from zero shows any nonzero term; a wider sum shows a term if the final rounding of the result
    // does.
    if (few && !visible({{0, large_}, {1, 0x1p-10F * last()}}, large_, 0))
      return none(m_.rounding, "the sum holds more bits than the result shows");
    m_.rounding.value = few ? SeenRounding::away : most ? SeenRounding::nearest : SeenRounding::toward_zero;
    m_.rounding.probe = fmt::format("{} plus 3/4 of its last place {}", large_, most ? "shows" : "does not show");
  }

  void order() {
    if (!m_.rounding.value || *m_.rounding.value == SeenRounding::away)
      return none(m_.order, "no two terms vanish one by one that count together");
    const float small = (*m_.rounding.value == SeenRounding::nearest ? 0.375F : 0.625F) * last();
    const auto tree = reveal(n_, [&](Index i, Index j) {
      Index before = 0;
      for (Index k = 0; k < n_; ++k)
        before += k != i && k != j && visible({{i, small}, {j, small}, {k, large_}}, large_, k);
      return n_ - before;
    });
    if (tree) m_.order.value = *tree;
    else none(m_.order, "the answers are those of no tree: the order depends on the values, or on the run");
  }

  void inputs() {
    if (probe_.sum().terms == Terms::exponentials && n_ > 1) return;
    const bool exponents = probe_.sum().terms == Terms::exponentials;
    const float base = exponents ? -16.0F : power(probe_.sum().lift);
    const int most = bits_of(probe_.stored_as(probe_.sum().left));
    const auto shows = [&](float v) { return probe_.shown({{0, v}}, true); };
    int bits = 1;
    const float plain = shows(base);
    while (bits < most && shows(base * (1 + power(-bits))) != plain) ++bits;
    if (bits == 1) return none(m_.input_bits, "the result does not show the input's bits");
    if (bits < most && (exponents || bits_of(probe_.stored_as(probe_.sum().result)) < kFloatBits))
      return none(m_.input_bits, "the result is too short to show the input's bits");
    m_.input_bits.value = bits;
    m_.bits_limited = bits == most;
    if (bits < most) m_.input_bits.probe = fmt::format("{} and {} gave the same", base, base * (1 + power(-bits)));
  }

  void flushes() {
    if (!probe_.sum().no_subnormals.empty()) return none(m_.flushes_inputs, probe_.sum().no_subnormals);
    if (n_ > 1 || probe_.stored_as(probe_.sum().left) == DType::f16 || probe_.sum().terms == Terms::exponentials)
      return;
    const double seen = probe_.shown({{0, 0x1p-130F}}, true);
    m_.flushes_inputs.value = seen == 0;
    m_.flushes_inputs.probe = fmt::format("{} gave {}", 0x1p-130F, seen);
  }

  Prober& probe_;
  Prober& exact_;
  Index n_;
  float large_ = 1;
  Measured m_;
};

}  // namespace

std::string_view name(SeenRounding rounding) {
  switch (rounding) {
    case SeenRounding::nearest_even: return "to nearest even";
    case SeenRounding::nearest: return "to nearest";
    case SeenRounding::toward_zero: return "toward zero";
    case SeenRounding::away: return "away from zero";
    case SeenRounding::other: return "by another rule";
  }
  return "?";
}

Measured measure(Prober& probe, Prober& exact) {
  const Terms terms = probe.sum().terms;
  return terms == Terms::products || terms == Terms::values ? Signed(probe).measure()
                                                            : Unsigned(probe, exact).measure();
}

}  // namespace assay::falsify::audit
