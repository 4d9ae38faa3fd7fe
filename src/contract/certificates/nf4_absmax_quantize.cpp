#include "contract/certificates/nf4_absmax_quantize.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/nf4_absmax.hpp"

namespace assay::contract {
namespace {

constexpr double kUnit = 0x1p-24;

/// Returns the number of levels of 256 terms each in a sum of `count` terms.
int levels_of(Index count) {
  int levels = 0;
  for (; count > 1; count = absmax_groups(count)) ++levels;
  return levels;
}

Certified all_undefined(View<const float> absmax2, View<const float> offset) {
  for (Index g = 0; g < absmax2.dim(0); ++g)
    if (!std::isnan(absmax2(g)))
      return {false, fmt::format("absmax2[{}] = {} where the mean is undefined", g, absmax2(g))};
  return {std::isnan(offset(0)), fmt::format("offset = {} where the mean is undefined", offset(0))};
}

}  // namespace

Certified nf4_absmax_nearest(View<const float> absmax, View<const std::uint8_t> codes, View<const float> absmax2,
                             View<const float> offset) {
  const Index count = absmax.size(), width = absmax.dim(1);
  const auto value = [&](Index i) { return static_cast<double>(absmax_value(absmax(i / width, i % width))); };
  double sum = 0;
  for (Index i = 0; i < count; ++i) sum += value(i);  // NaN and infinities propagate
  const double tree = (8 * levels_of(count) + 3) * kUnit, middle = offset(0);
  if (!(sum * (1 - tree) <= FLT_MAX)) return all_undefined(absmax2, offset);
  if (std::isnan(middle) && sum * (1 + tree) > FLT_MAX) return {};  // rounding decides whether the sum overflows
  const double mean = count == 0 ? 0 : sum / static_cast<double>(count);
  if (!(std::fabs(middle - mean) <= tree * mean + static_cast<double>(kNf4Smallest)))
    return {false, fmt::format("offset = {} where the mean is {}", middle, mean)};
  for (Index g = 0; g < absmax2.dim(0); ++g) {
    const double scale = absmax2(g);
    double most = 0;
    const Index first = g * kAbsmaxGroup, end = std::min(count, first + kAbsmaxGroup);
    for (Index i = first; i < end; ++i) most = std::max(most, std::fabs(value(i) - middle));
    const double missing = scale == 0 ? static_cast<double>(kAbsmaxSmallest) : kUnit * most;
    if (!(std::fabs(scale - most) <= missing))
      return {false, fmt::format("absmax2[{}] = {} where the largest distance from the offset is {}", g, scale, most)};
    for (Index i = first; i < end; ++i) {
      const std::size_t code = codes(i);
      if (scale == 0 && code != kAbsmaxZero)
        return {false, fmt::format("codes[{}] = {} in a group whose absmax2 is 0", i, code)};
      const auto distance = [&](std::size_t entry) {
        return std::fabs(value(i) - middle - static_cast<double>(kAbsmaxCode[entry]) * scale);
      };
      const double own = distance(code), allowed = 8 * kUnit * scale;
      const bool below = code == 0 || own <= distance(code - 1) + allowed;
      const bool above = code + 1 == kAbsmaxCode.size() || own <= distance(code + 1) + allowed;
      if (below && above) continue;
      return {false, fmt::format("scale {} = {} has code {} with absmax2 {} and offset {}, and the entry {} is nearer",
                                 i, value(i), code, scale, middle, below ? "above" : "below")};
    }
  }
  return {};
}

}  // namespace assay::contract
