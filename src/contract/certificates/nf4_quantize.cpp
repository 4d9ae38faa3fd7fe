#include "contract/certificates/nf4_quantize.hpp"

#include <fmt/format.h>

#include <cmath>

#include "core/nf4.hpp"

namespace assay::contract {

Certified nf4_nearest(View<const float> x, View<const std::uint8_t> codes, View<const float> absmax) {
  for (Index j = 0; j < x.dim(0); ++j)
    for (Index p = 0; p < x.dim(1); ++p) {
      const double scale = absmax(j, p / kNf4Block), value = x(j, p);
      if (!(scale > 0 && scale < INFINITY)) continue;
      const auto code = static_cast<std::size_t>(p % 2 == 0 ? codes(j, p / 2) >> 4U : codes(j, p / 2) & 15U);
      const auto distance = [&](std::size_t entry) {
        return std::fabs(value - static_cast<double>(kNf4.at(entry)) * scale);
      };
      const double own = distance(code), allowed = 0x1p-22 * scale;
      const bool below = code == 0 || own <= distance(code - 1) + allowed;
      const bool above = code + 1 == kNf4.size() || own <= distance(code + 1) + allowed;
      if (below && above) continue;
      return {false, fmt::format("x[{}, {}] = {} has code {} of a block whose absmax is {}, and the entry {} is nearer",
                                 j, p, value, code, scale, below ? "above" : "below")};
    }
  return {};
}

}  // namespace assay::contract
