// Where a mean of values may lie, for the certificates of attention.
#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "contract/certificates/elements.hpp"

namespace assay::contract {

/// What some values span.
struct Hull {
  double least = INFINITY, largest = -INFINITY;
  bool finite = true;
  void add(double value) {
    least = std::min(least, value);
    largest = std::max(largest, value);
    finite &= std::isfinite(value);
  }
};

/// How far from the hull of up to `most` values of the format `values` their mean may lie, under any computed weights that are
/// not negative, in the arithmetic in force, when it is stored as `stored`.
class MeanBound {
 public:
  MeanBound(DType values, DType stored, Index most);
  /// That distance, where the mean of n values lies beyond it. `scores` bounds the magnitude of the largest score or of the logsumexp.
  /// Nothing is said of values that are not finite, or whose sum may overflow.
  std::optional<double> violated(const Hull& hull, Index n, double mean, double scores) const;

 private:
  StorageRounding stored_;
  double shortened_ = 0, flushed_ = 0;
  std::vector<double> roundings_;  ///< of a mean of n numbers up to 1
};

}  // namespace assay::contract
