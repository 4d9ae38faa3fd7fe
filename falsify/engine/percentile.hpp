// Percentiles of small lists, for reports.
#pragma once

#include <algorithm>
#include <vector>

namespace assay::falsify {

/// Returns the value below which a fraction `p` of the list lies, by the nearest rank; 0 for an empty list.
inline double percentile(std::vector<double> values, double p) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  return values[static_cast<std::size_t>(p * static_cast<double>(values.size() - 1) + 0.5)];
}

}  // namespace assay::falsify
