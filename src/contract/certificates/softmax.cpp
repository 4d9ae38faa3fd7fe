#include "contract/certificates/softmax.hpp"

#include <fmt/format.h>

#include <cmath>

#include "contract/certificates/elements.hpp"
#include "core/forms.hpp"

namespace assay::contract {
namespace {

struct Row {
  double largest = -INFINITY;
  bool special = false;  ///< NaN or +inf
};

Row look_at(const StorageView& x, Index i) {
  Row row;
  for (Index j = 0; j < x.dim(1); ++j) {
    const double v = element(x, i, j);
    row.special |= std::isnan(v) || v == INFINITY;
    row.largest = std::max(row.largest, v);
  }
  return row;
}

}  // namespace

Certified distributions(const StorageView& x, const StorageView& y) {
  const Roundings& r = Roundings::current();
  const StorageRounding stored = storage_rounding(y.dtype());
  const double n = static_cast<double>(y.dim(1));
  for (Index i = 0; i < y.dim(0); ++i) {
    const Row row = look_at(x, i);
    if (row.special) continue;
    const bool masked = row.largest == -INFINITY;
    double sum = 0, apart = 0;
    for (Index j = 0; j < y.dim(1); ++j) {
      const double p = element(y, i, j);
      if (!(p >= 0 && p <= 1 + 0x1p-10)) return {false, fmt::format("y[{}, {}] = {} is no probability", i, j, p)};
      sum += p;
      const double logit = element(x, i, j);
      if (masked || std::isinf(logit)) continue;
      const Bounded term = softmax_term(Bounded(logit, 0, 0, false), Bounded(row.largest, 0, 0, false),
                                        Rescalings<Bounded>::most(static_cast<std::size_t>(y.dim(1))));
      apart += 2 * term.error;
    }
    // The sum of exact terms is at least 1, the term of the maximum, so errors of terms are relative to the sum.
    const double unit = r.division + r.unit;
    const double relative = (1 + r.growth(n)) * (1 + unit) * (1 + unit) - 1;
    // The store rounds each probability; subnormal ones it may flush.
    const double of_store =
        stored.unit * (sum + n * stored.smallest) / (1 - stored.unit) + n * r.of.flushed_below(stored.smallest);
    const double bound =
        (relative * (1 + apart) + apart + n * (r.underflow + r.flush) + of_store) * (1 + 0x1p-10) + n * 0x1p-50;
    if (masked ? sum == 0 : std::fabs(sum - 1) <= bound) continue;
    return {false, fmt::format("row {}: y sums to {:.9g}, {:.4g} from {} where {:.4g} is the bound", i, sum,
                               std::fabs(sum - (masked ? 0 : 1)), masked ? 0 : 1, masked ? 0 : bound)};
  }
  return {};
}

}  // namespace assay::contract
