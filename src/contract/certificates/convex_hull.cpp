#include "contract/certificates/convex_hull.hpp"

#include <algorithm>
#include <cfloat>
#include <cmath>

#include "core/attention_forms.hpp"
#include "core/forms.hpp"

namespace assay::contract {
namespace {

/// Returns the distance of a computed mean of n numbers up to 1 from their hull: the numerator's products, the
/// roundings of weights that the divisor does not share, both sums and the quotient (core/attention_forms.cpp).
double rounding_of_mean(double n) {
  const Roundings& r = Roundings::current();
  const double rescalings = Rescalings<Bounded>::most(static_cast<std::size_t>(n));
  const double weights =
      (1 + r.input_unit) * (1 + r.unit + r.division) * (1 + 2 * rescalings * r.unit * (1 + rescalings * 4 * r.unit));
  const double sums = (1 + r.growth(n)) / std::max(1 - r.growth(n), 0x1p-10);
  const double values = 1 + r.input_unit;
  return (weights * sums * values * (1 + r.unit) * (1 + r.unit + r.division) - 1) * (1 + 0x1p-10) +
         n * r.input_unit * (r.of.inputs == Format::f32 ? 0 : r.input_floor);
}

}  // namespace

MeanBound::MeanBound(DType values, DType stored, Index most) : stored_(storage_rounding(stored)) {
  const Roundings& arithmetic = Roundings::current();
  // A value below the smallest normal input loses an absolute amount if the kernel converts it to a shorter format.
  if (values == DType::f32 && arithmetic.of.inputs != Format::f32)
    shortened_ = arithmetic.input_unit * arithmetic.input_floor;
  // A flush turns a subnormal value, or a subnormal mean, into 0.
  flushed_ = 2 * arithmetic.of.flushed_below(stored_.smallest);
  for (Index n = 0; n <= most; ++n) roundings_.push_back(rounding_of_mean(static_cast<double>(n)));
}

// In base 2, 2^(s c - m c), the weight of the largest score is not exactly 1, since c and m c are rounded, and s c may
// be: three roundings of m, shared by all weights (core/attention_forms.cpp). Their exp scales all weights by one
// factor, which cancels except for underflow in the weights and in their products; scaled by exp(60) these are still
// normal numbers. Beyond exp(60) a sum of weights may overflow, and products may be subnormal: rounding at most doubles
// such products or makes them 0.
// Merged parts: weights w_j of a sum W >= 1 are x_j = -log w_j below the shift, and the mean of x_j under them is at
// most log W + the entropy of w / W, together at most 2 log n.
std::optional<double> MeanBound::violated(const Hull& hull, Index n, double mean, double scores) const {
  const Roundings& r = Roundings::current();
  const double size = std::max(std::fabs(hull.least), std::fabs(hull.largest)), count = static_cast<double>(n);
  if (!hull.finite || size * count > std::ldexp(FLT_MAX / 2, -r.of.lazy_rescaling)) return std::nullopt;
  const double log_n = std::log(std::max(count, 1.0)), together = 3 * r.unit * (1 + 4 * r.unit) * (scores + log_n);
  const bool any_size = !(together <= 60);
  if (any_size && !std::isfinite(mean)) return std::nullopt;
  const double lost = count * (r.underflow * (1 + size) + r.flush) * (any_size ? 1 : std::exp(together));
  const double before_store =
      (roundings_[static_cast<std::size_t>(n)] + (any_size ? 0 : merging_error(scores + log_n, 2 * log_n, count))) *
          (size + stored_.smallest) +
      lost + flushed_ + shortened_;
  // The store makes means from the limit on infinite.
  const bool overflowed = std::isinf(mean);
  const double bound =
      before_store + (overflowed ? 0 : stored_.unit * size * (1 + 0x1p-10) + stored_.unit * stored_.smallest);
  const double reached = overflowed ? std::copysign(stored_.limit, mean) : mean;
  const double least = any_size ? std::min(2 * hull.least, 0.0) : hull.least,
               largest = any_size ? std::max(2 * hull.largest, 0.0) : hull.largest;
  if (reached >= least - bound && reached <= largest + bound) return std::nullopt;
  return bound;
}

}  // namespace assay::contract
