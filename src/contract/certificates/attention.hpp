// The certificate of attention.
#pragma once

#include "contract/certificates.hpp"

namespace assay::contract {

/// Every y[b,i,h,c] of y [batch, s, heads, d] lies between the least and the largest of the values v[b,j,g,c] that the query
/// sees (lengths, starts [batch], causal as in contracts/attention.yaml), within the rounding of a mean of numbers of that
/// size under any weights that are not negative; it is 0 where logsumexp [batch, heads, s] is -inf, and that where the query
/// sees nothing. A column with NaN or Inf in sight, or with numbers whose sum may overflow, is not looked at. O(size of v and
/// y) in double.
Certified within_hull(const StorageView& v, View<const std::int32_t> lengths, View<const std::int32_t> starts,
                      const StorageView& y, View<const float> logsumexp, double causal);

}  // namespace assay::contract
