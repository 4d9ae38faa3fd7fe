#include "contract/certificates/hull.hpp"

#include <algorithm>
#include <cfloat>
#include <cmath>

#include "core/forms.hpp"

namespace assay::contract {
namespace {

/// |mean of n numbers up to 1, under computed weights - a point of their hull|: the numerator's products, the roundings of
/// weights that the divisor does not share, both sums and the quotient (core/attention_forms.cpp).
double rounding_of_mean(double n) {
  const Roundings& r = Roundings::current();
  const double rescalings = Rescalings<Bounded>::most(static_cast<std::size_t>(n));
  const double weights = (1 + r.input_unit) * (1 + r.unit + r.division) * (1 + 2 * rescalings * r.unit * (1 + rescalings * 4 * r.unit));
  const double sums = (1 + r.growth(n)) / std::max(1 - r.growth(n), 0x1p-10);
  const double values = 1 + r.input_unit;
  return (weights * sums * values * (1 + r.unit) * (1 + r.unit + r.division) - 1) * (1 + 0x1p-10) +
         n * (r.underflow + r.flush + r.input_unit * (r.of.inputs == Format::f32 ? 0 : r.input_floor));
}

}  // namespace

MeanBound::MeanBound(DType values, DType stored, Index most) : stored_(storage_rounding(stored)) {
  const Roundings& arithmetic = Roundings::current();
  // A value below the smallest normal input loses an absolute part where the kernel takes it in a shorter format.
  if (values == DType::f32 && arithmetic.of.inputs != Format::f32) shortened_ = arithmetic.input_unit * arithmetic.input_floor;
  // A flush takes a subnormal value, or a subnormal mean, away whole.
  if (arithmetic.of.flushes_subnormals) flushed_ = 2 * stored_.smallest;
  for (Index n = 0; n <= most; ++n) roundings_.push_back(rounding_of_mean(static_cast<double>(n)));
}

std::optional<double> MeanBound::violated(const Hull& hull, Index n, double mean) const {
  const double size = std::max(std::fabs(hull.least), std::fabs(hull.largest));
  if (!hull.finite || size * static_cast<double>(n) > FLT_MAX / 2) return std::nullopt;
  const double bound = roundings_[static_cast<std::size_t>(n)] * (size + stored_.smallest) + stored_.unit * size * (1 + 0x1p-10) +
                       stored_.unit * stored_.smallest + flushed_ + shortened_;
  if (mean >= hull.least - bound && mean <= hull.largest + bound) return std::nullopt;
  return bound;
}

}  // namespace assay::contract
