#include "contract/certificates/rmsnorm.hpp"

#include <fmt/format.h>

#include <cmath>

#include "contract/certificates/elements.hpp"
#include "core/forms.hpp"

namespace assay::contract {
namespace {

/// Returns the relative error of rrms for a row with this sum of squares.
double error_of_rrms(double squares, double n, double eps) {
  const Roundings& r = Roundings::current();
  Terms terms;
  terms.total = terms.magnitude = squares;
  terms.count = n;
  terms.error = r.unit * squares + n * r.underflow;
  const Bounded mean = quotient(Terms::sum(terms, r), Bounded(n, 0, 0, false));
  const Bounded rrms = reciprocal_sqrt(mean + Bounded(eps));
  return rrms.error / rrms.value;
}

/// Returns whether rrms may be 0 or not finite.
bool excused(const StorageView& x, Index i) {
  double squares = 0;
  for (Index j = 0; j < x.dim(1); ++j) squares += element(x, i, j) * element(x, i, j);
  return !(squares * (1 + 0x1p-10) <= FLT_MAX);
}

}  // namespace

Certified unit_mean_square(const StorageView& x, View<const float> weight, const StorageView& y, View<const float> rrms,
                           double eps) {
  const Roundings& r = Roundings::current();
  const StorageRounding stored = storage_rounding(y.dtype());
  const double n = static_cast<double>(y.dim(1)),
               smallest = std::max(stored.smallest, r.narrow ? r.underflow / r.unit : 0);
  const double delta = (1 + r.unit) * (1 + r.unit) * (1 + stored.unit) - 1;
  for (Index i = 0; i < y.dim(0); ++i) {
    const double scale = rrms(i);
    if (!(scale > 0) || !std::isfinite(scale)) {
      if (excused(x, i)) continue;
      return {false, fmt::format("row {}: rrms = {}, and its squares are finite", i, scale)};
    }
    double sum = 0;
    bool finite = true;
    for (Index j = 0; j < y.dim(1); ++j) {
      const double result = element(y, i, j), factor = weight(j);
      // The result may have lost digits, or cannot be divided by the weight: use x instead.
      const bool lost = !(std::fabs(result) >= smallest) || !(std::fabs(factor) >= 0x1p-60) || std::isinf(result) ||
                        !std::isfinite(factor);
      const double normalized = lost ? element(x, i, j) * scale : result / factor;
      if (std::isnan(result) && std::isfinite(normalized) && std::isfinite(factor))
        return {false, fmt::format("y[{}, {}] is NaN, made of x·rrms = {} and weight {}", i, j, normalized, factor)};
      finite &= std::isfinite(normalized);
      sum += normalized * normalized;
    }
    if (!finite) continue;  // NaN in x: other obligations check it
    const double mean = sum / n, side = mean + eps * scale * scale;
    const double rho = error_of_rrms(sum / (scale * scale), n, eps);
    const double bound = (rho * (2 + rho) + delta * (2 + delta) * mean) * (1 + 0x1p-20) + n * 0x1p-50;
    if (std::fabs(side - 1) <= bound || !std::isfinite(rho)) continue;
    return {false,
            fmt::format("row {}: mean((y/weight)²) + eps·rrms² = {:.9g}, {:.4g} from 1 where {:.4g} is the bound", i,
                        side, std::fabs(side - 1), bound)};
  }
  return {};
}

}  // namespace assay::contract
