// Bounds of a mean of values, for the certificates of attention.
#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "contract/certificates/elements.hpp"

namespace assay::contract {

/// Interval spanned by the values added.
struct Hull {
  double least = INFINITY, largest = -INFINITY;
  bool finite = true;
  void add(double value) {
    least = std::min(least, value);
    largest = std::max(largest, value);
    finite &= std::isfinite(value);
  }
};

/// Bound on the distance of a computed mean from the hull of up to `most` values of format `values`, stored as
/// `stored`, for any non-negative weights under the current arithmetic.
class MeanBound {
 public:
  MeanBound(DType values, DType stored, Index most);
  /// Returns the bound if the mean of n values lies beyond it, otherwise nothing. `scores` bounds the magnitude of the
  /// largest score or of the logsumexp. Values that are not finite, or whose sum may overflow, are not checked.
  std::optional<double> violated(const Hull& hull, Index n, double mean, double scores) const;

 private:
  StorageRounding stored_;
  double shortened_ = 0, flushed_ = 0;
  std::vector<double> roundings_;  ///< error of a mean of n numbers up to 1
};

}  // namespace assay::contract
