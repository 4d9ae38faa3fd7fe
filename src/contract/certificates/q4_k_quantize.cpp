#include "contract/certificates/q4_k_quantize.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/q4_k.hpp"

namespace assay::contract {
namespace {

/// Returns whether some x is not finite, or 63 or 945 times the largest half is too small.
bool beyond_range(View<const float> x, Index row, Index first, Index last) {
  double low = 0, high = 0;
  for (Index p = first; p < last; ++p) {
    if (!std::isfinite(x(row, p))) return true;
    low = std::max(low, -static_cast<double>(x(row, p)));
    high = std::max(high, static_cast<double>(x(row, p)));
  }
  // Rounding up adds at most one dmin to the minimum, which is at most low / 63 and one unit of a half.
  const double minimum = low + low / 63 * (1 + 0x1p-10) + 0x1p-24;
  return low > 63.0 * 65504 || (high + minimum) * (1 + 0x1p-23) > 945.0 * 65504;
}

}  // namespace

Certified q4_k_round_trip(View<const float> x, View<const std::uint8_t> blocks) {
  for (Index i = 0; i < x.dim(0); ++i)
    for (Index first = 0; first < x.dim(1); first += q4_k::kValues) {
      const std::uint8_t* const block = &blocks(i, first / q4_k::kValues * q4_k::kBytes);
      const Index last = std::min(first + q4_k::kValues, x.dim(1));
      if (q4_k::half_at(block).bits == q4_k::kUndefined.bits) {
        if (beyond_range(x, i, first, last)) continue;
        return {false, fmt::format("row {}: values from {} on are in range, and d is NaN", i, first)};
      }
      for (Index p = first; p < last; ++p) {
        const q4_k::Line line = q4_k::line_of(block, (p - first) / q4_k::kSubBlock);
        const double v = q4_k::value_at(block, p - first), want = x(i, p);
        const double bound = line.step / 2.0 + 0x1p-24 * (std::fabs(want + line.minimum) + std::fabs(v)) + 0x1p-126;
        if (std::fabs(v - want) <= bound * (1 + 0x1p-50)) continue;
        return {false, fmt::format("x[{}, {}] = {} decodes to {}: {:.4g} apart where {:.4g} is the bound", i, p, want,
                                   v, std::fabs(v - want), bound)};
      }
    }
  return {};
}

}  // namespace assay::contract
