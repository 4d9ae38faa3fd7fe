#include "falsify/policies/measures.hpp"

#include <cmath>
#include <cstddef>

namespace assay::falsify::policies {

std::ptrdiff_t first_beyond(std::span<const float> got, std::span<const float> want, double relative, double absolute,
                            bool equal_nan) {
  for (std::size_t i = 0; i < want.size(); ++i) {
    if (got[i] == want[i] || (equal_nan && std::isnan(got[i]) && std::isnan(want[i]))) continue;
    const double g = static_cast<double>(got[i]), w = static_cast<double>(want[i]);
    if (!std::isfinite(g) || !std::isfinite(w) || !(std::fabs(g - w) <= absolute + relative * std::fabs(w)))
      return static_cast<std::ptrdiff_t>(i);
  }
  return -1;
}

}  // namespace assay::falsify::policies
