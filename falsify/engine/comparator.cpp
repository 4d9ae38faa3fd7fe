#include "falsify/engine/comparator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "core/errors.hpp"
#include "core/half.hpp"

namespace assay::falsify {
namespace {

enum class Class { finite, positive_infinity, negative_infinity, nan };

Class class_of(double x) {
  if (std::isnan(x)) return Class::nan;
  if (std::isinf(x)) return x > 0 ? Class::positive_infinity : Class::negative_infinity;
  return Class::finite;
}

constexpr std::string_view kKindNames[] = {"value",       "class",         "bits",       "sign",  "shape",
                                           "not written", "out of bounds", "late write", "crash", "hang",
                                           "error",       "contract",      "rounding"};
static_assert(std::size(kKindNames) == static_cast<std::size_t>(Finding::Kind::rounding) + 1);

Finding element(Finding::Kind kind, std::string_view tensor, const Shape& shape, std::size_t at, double got,
                double want, double bound, std::string message) {
  return {kind, std::move(message), std::string(tensor), index_of(shape, at), got, want, bound};
}

/// Returns an exact value rounded to a 16-bit output format.
double as_stored(DType dtype, double x) {
  return dtype == DType::f16 || dtype == DType::bf16 ? stored(dtype, static_cast<float>(x)) : x;
}

struct Limit {
  double bound = 0;
  bool any_class = false;
  bool empty = false;

  bool wrong_sign(double got) const { return empty && got == 0 && std::signbit(got); }
};

Limit limit_of(Tier tier, const Bounded& want) {
  switch (tier) {
    case Tier::exact:
    case Tier::bits: return {0, false, want.empty};
    case Tier::worst_case: return {want.error, want.may_overflow, want.empty};
    case Tier::statistical: return {want.statistical, want.may_overflow, want.empty};
  }
  return {};
}

/// Returns the difference of two floats that should hold the same bits; never 0 if the bits differ.
double distance(float got, float want) {
  if (std::bit_cast<std::uint32_t>(got) == std::bit_cast<std::uint32_t>(want)) return 0;
  if (std::isnan(got) || std::isnan(want)) return std::isnan(got) && std::isnan(want) ? 0 : INFINITY;
  return std::max<double>(std::fabs(static_cast<double>(got) - want), std::numeric_limits<float>::denorm_min());
}

double over(double difference, double bound) {
  if (bound == INFINITY) return 0;  // if the reference may overflow, any result is right
  if (bound > 0) return difference / bound;
  return difference <= bound ? 0 : INFINITY;
}

/// Returns the error of one element as a cell of an ErrorMap: above 0 (exact tiers) or 1 (others) exactly where
/// compare() fails.
double error_of(Tier tier, float got, double want, const Limit& limit) {
  if (tier == Tier::bits) return distance(got, static_cast<float>(want));
  if (limit.any_class && class_of(got) != Class::finite) return 0;
  if (class_of(got) != class_of(want)) return INFINITY;
  if (class_of(want) != Class::finite) return 0;
  if (limit.wrong_sign(got)) return INFINITY;
  const double difference = std::fabs(got - want);
  return tier == Tier::exact ? difference : over(difference, limit.bound);
}

}  // namespace

std::vector<double> widened(const std::vector<float>& values) { return {values.begin(), values.end()}; }

std::vector<double> bounds_of(const std::vector<Bounded>& want) {
  std::vector<double> bounds;
  for (const Bounded& w : want) bounds.push_back(w.may_overflow ? INFINITY : w.error);
  return bounds;
}

Shape index_of(const Shape& shape, std::size_t position) {
  Shape index = shape;
  auto rest = static_cast<Index>(position);
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    index[axis] = shape[axis] ? rest % shape[axis] : 0;
    rest = shape[axis] ? rest / shape[axis] : 0;
  }
  return index;
}

std::string_view name(Finding::Kind kind) { return kKindNames[static_cast<std::size_t>(kind)]; }

Finding::Kind kind_from(std::string_view name, const std::string& where) {
  const auto at = std::ranges::find(kKindNames, name);
  if (at == std::end(kKindNames))
    throw InputError(where, fmt::format("has '{}', which is no kind of finding", name), "write it anew");
  return static_cast<Finding::Kind>(at - std::begin(kKindNames));
}

Outcome& Outcome::operator&=(const Outcome& other) {
  if (kind != Kind::falsified && other.kind != Kind::passed) {
    kind = other.kind;
    reason = other.reason;
    finding = other.finding;
  }
  elements += other.elements;
  nonzero += other.nonzero;
  zero_passes += other.zero_passes;
  worst = std::max(worst, other.worst);
  return *this;
}

namespace {

/// The tier is a constant in the loop over elements.
template <Tier tier>
Outcome compare_in(std::string_view tensor, const Shape& shape, std::span<const float> got,
                   std::span<const Bounded> want, DType dtype, std::span<const std::size_t> places) {
  Outcome outcome;
  const std::size_t size = static_cast<std::size_t>(shape.size()), expected_size = places.empty() ? want.size() : size;
  if (got.size() != expected_size)
    return Outcome::falsify({Finding::Kind::shape,
                             fmt::format("{} has {} elements where {} are expected", tensor, got.size(), expected_size),
                             std::string(tensor),
                             {},
                             0,
                             0,
                             0});
  const bool exactly = tier == Tier::exact || tier == Tier::bits;
  const auto expected = [&](const Bounded& b) { return exactly ? as_stored(dtype, b.value) : b.value; };
  for (std::size_t n = 0; n < want.size(); ++n) {
    const std::size_t i = places.empty() ? n : places[n];
    ++outcome.elements;
    outcome.nonzero += want[n].value != 0;
    const double g = got[i], w = expected(want[n]);
    const Limit limit = limit_of(tier, want[n]);
    outcome.zero_passes += want[n].value != 0 && std::fabs(w) <= limit.bound;
    if (outcome.finding) continue;
    const auto fail = [&](Finding::Kind kind, std::string message) {
      outcome.kind = Outcome::Kind::falsified;
      outcome.finding = element(kind, tensor, shape, i, g, w, limit.bound, std::move(message));
    };
    if (tier == Tier::bits) {
      const auto got_bits = std::bit_cast<std::uint32_t>(got[i]);
      const auto want_bits = std::bit_cast<std::uint32_t>(static_cast<float>(w));
      const bool same = std::isnan(w) ? std::isnan(got[i]) : got_bits == want_bits;
      if (!same)
        fail(Finding::Kind::bits,
             fmt::format("got {} ({:#010x}), want {} ({:#010x}) exactly", g, got_bits, w, want_bits));
      continue;
    }
    if (limit.any_class && class_of(g) != Class::finite) continue;
    if (class_of(g) != class_of(w)) {
      fail(Finding::Kind::other_class, limit.any_class && class_of(w) != Class::finite
                                           ? fmt::format("got {}, want an infinity or NaN", g)
                                           : fmt::format("got {}, want {}: not of the same class", g, w));
      continue;
    }
    if (class_of(w) != Class::finite) continue;
    if (limit.wrong_sign(g)) {
      fail(Finding::Kind::sign, "got -0 where nothing is summed, want +0 (IEEE 754-2019, 9.4)");
      continue;
    }
    const double difference = std::fabs(g - w);
    if (!(difference <= limit.bound)) {
      fail(Finding::Kind::value, limit.bound > 0
                                     ? fmt::format("got {}, want {}: off by {:.6g}, {:.4g} times the bound {:.6g}", g,
                                                   w, difference, difference / limit.bound, limit.bound)
                                     : fmt::format("got {}, want {} exactly", g, w));
      outcome.worst = std::max(outcome.worst, limit.bound > 0 ? difference / limit.bound : INFINITY);
    } else if (limit.bound > 0) {
      outcome.worst = std::max(outcome.worst, difference / limit.bound);
    }
  }
  if (outcome.finding) {
    std::vector<double> errors(got.size());
    for (std::size_t n = 0; n < want.size(); ++n) {
      const std::size_t i = places.empty() ? n : places[n];
      errors[i] = error_of(tier, got[i], expected(want[n]), limit_of(tier, want[n]));
    }
    outcome.finding->errors = error_map(tensor, shape, !exactly, [&](std::size_t i) { return errors[i]; });
  }
  return outcome;
}

}  // namespace

Outcome compare(Tier tier, std::string_view tensor, const Shape& shape, std::span<const float> got,
                std::span<const Bounded> want, DType dtype, std::span<const std::size_t> places) {
  const auto in = [tier] {
    if (tier == Tier::exact) return compare_in<Tier::exact>;
    if (tier == Tier::bits) return compare_in<Tier::bits>;
    return tier == Tier::worst_case ? compare_in<Tier::worst_case> : compare_in<Tier::statistical>;
  };
  return in()(tensor, shape, got, want, dtype, places);
}

Outcome compare_payloads(std::string_view tensor, const Shape& shape, std::span<const float> got,
                         std::span<const float> want) {
  const auto differ = [&](std::size_t i) {
    return std::isnan(want[i]) && std::bit_cast<std::uint32_t>(got[i]) != std::bit_cast<std::uint32_t>(want[i]);
  };
  std::size_t i = 0;
  while (i < want.size() && !differ(i)) ++i;
  if (i == want.size()) return {};
  Finding finding = element(Finding::Kind::bits, tensor, shape, i, got[i], want[i], 0,
                            fmt::format("got {:#010x}, want the NaN {:#010x} of the input exactly",
                                        std::bit_cast<std::uint32_t>(got[i]), std::bit_cast<std::uint32_t>(want[i])));
  finding.errors = error_map(tensor, shape, false, [&](std::size_t at) { return differ(at) ? INFINITY : 0; });
  return Outcome::falsify(std::move(finding));
}

Outcome compare_bits(std::string_view tensor, const Shape& shape, std::span<const float> got,
                     std::span<const float> want, std::string_view meaning) {
  Outcome outcome;
  for (std::size_t i = 0; i < got.size(); ++i) {
    ++outcome.elements;
    outcome.nonzero += want[i] != 0;
    const auto g = std::bit_cast<std::uint32_t>(got[i]), w = std::bit_cast<std::uint32_t>(want[i]);
    if (g == w || outcome.finding) continue;
    if (std::isnan(got[i]) && std::isnan(want[i])) continue;  // the payload of a computed NaN is unspecified
    outcome.kind = Outcome::Kind::falsified;
    outcome.finding = element(Finding::Kind::bits, tensor, shape, i, got[i], want[i], 0,
                              fmt::format("{}: got {} ({:#010x}), want {} ({:#010x})", meaning, got[i], g, want[i], w));
  }
  if (outcome.finding)
    outcome.finding->errors = error_map(tensor, shape, false, [&](std::size_t i) { return distance(got[i], want[i]); });
  return outcome;
}

namespace {

/// Distance with NaN infinitely far from all but NaN; equal infinities are 0 apart.
double apart(double x, double y) {
  if (x == y || (std::isnan(x) && std::isnan(y))) return 0;
  const double difference = std::fabs(x - y);
  return std::isnan(difference) ? INFINITY : difference;
}

}  // namespace

Outcome compare_within(std::string_view tensor, const Shape& shape, std::span<const double> got,
                       std::span<const double> want, std::span<const double> bound) {
  Outcome outcome;
  for (std::size_t i = 0; i < got.size(); ++i) {
    ++outcome.elements;
    outcome.nonzero += want[i] != 0;
    if (outcome.finding) continue;
    const double difference = apart(got[i], want[i]);
    if (bound[i] > 0) outcome.worst = std::max(outcome.worst, over(difference, bound[i]));
    if (difference <= bound[i]) continue;
    outcome.kind = Outcome::Kind::falsified;
    outcome.finding = element(Finding::Kind::value, tensor, shape, i, got[i], want[i], bound[i],
                              fmt::format("one side {}, the other {}: {:.6g} apart, the bound is {:.6g}", got[i],
                                          want[i], difference, bound[i]));
  }
  if (outcome.finding)
    outcome.finding->errors =
        error_map(tensor, shape, true, [&](std::size_t i) { return over(apart(got[i], want[i]), bound[i]); });
  return outcome;
}

}  // namespace assay::falsify
