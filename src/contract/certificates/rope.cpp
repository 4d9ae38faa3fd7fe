#include "contract/certificates/rope.hpp"

#include <fmt/format.h>

#include <cmath>

#include "contract/certificates/elements.hpp"
#include "core/accuracy.hpp"
#include "core/bounded.hpp"

namespace assay::contract {

Certified pair_norms(const StorageView& x, const StorageView& y, double interleaved) {
  const Roundings& r = Roundings::current();
  const StorageRounding stored = storage_rounding(y.dtype());
  const FunctionLibrary library = r.of.functions;
  const double promised =
      std::max(accuracy(library, Function::sin).relative(0), accuracy(library, Function::cos).relative(0)) +
      (r.narrow ? r.unit : 0);
  const double unit = (1 + promised) * (1 + r.unit) * (1 + r.unit) * (1 + r.unit) * (1 + stored.unit) - 1;
  const double lost = 2 * r.underflow + 2 * r.flush +
                      std::max(r.of.flushed_below(stored.smallest), stored.smallest * std::max(stored.unit, 0x1p-24));
  const Index d = x.dim(2);
  for (Index row = 0; row < x.dim(0); ++row)
    for (Index head = 0; head < x.dim(1); ++head)
      for (Index i = 0; i < d / 2; ++i) {
        const Index first = interleaved != 0 ? 2 * i : i, second = interleaved != 0 ? 2 * i + 1 : i + d / 2;
        const double x1 = element(x, row, head, first), x2 = element(x, row, head, second);
        const double y1 = element(y, row, head, first), y2 = element(y, row, head, second);
        const double magnitude = std::fabs(x1) + std::fabs(x2);
        // Other obligations check the classes of results that may overflow or come from a non-finite x.
        if (!(magnitude * (1 + unit) < (y.dtype() == DType::f16 ? 65504 : FLT_MAX))) continue;
        const double before = std::hypot(x1, x2), after = std::hypot(y1, y2);
        const double bound = (1.4143 * (magnitude * unit + lost)) * (1 + 0x1p-20);
        if (std::fabs(after - before) <= bound) continue;
        return {false,
                fmt::format(
                    "row {}, head {}, pair {}: norm {:.9g}, and {:.9g} of x: {:.4g} apart where {:.4g} is the bound",
                    row, head, i, after, before, std::fabs(after - before), bound)};
      }
  return {};
}

}  // namespace assay::contract
