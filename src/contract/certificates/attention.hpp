// The certificate of attention.
#pragma once

#include "contract/certificates.hpp"

namespace assay::contract {

/// Checks that every y[b,i,h,c] of y [batch, s, heads, d] lies between the least and the largest of the values
/// v[b,j,g,c] visible to the query (lengths, starts [batch], causal as in contracts/attention.yaml), within the
/// rounding of a mean of numbers of that size under any non-negative weights. y must be 0 where logsumexp [batch,
/// heads, s] is -inf, and logsumexp must be -inf where the query sees no key. Columns with visible NaN or Inf, or with
/// numbers whose sum may overflow, are skipped. O(size of v and y) in double.
Certified within_hull(const StorageView& v, View<const std::int32_t> lengths, View<const std::int32_t> starts,
                      const StorageView& y, View<const float> logsumexp, double causal);

}  // namespace assay::contract
