// The certificate of attention_decode.
#pragma once

#include "contract/certificates.hpp"

namespace assay::contract {

/// Checks that position lengths[b] of cache [batch, capacity, kv_heads, d] holds the bits of row [batch, kv_heads, d].
/// O(size of row).
Certified appended(const StorageView& row, View<const std::int32_t> lengths, const StorageView& cache);

/// Checks that every y[b,h,c] of y [batch, heads, d] lies between the least and the largest v_cache[b,j,g,c] of j <=
/// lengths[b] (certificate of attention). A NaN, or the 0 of scores that are all -inf, is accepted only if a score of q
/// and k_cache may overflow, or an element of q or k_cache is not finite. Columns with non-finite values, or with
/// values whose sum may overflow, are skipped. O(size of the caches in use) in double.
Certified within_cache(const StorageView& q, const StorageView& k_cache, const StorageView& v_cache,
                       View<const std::int32_t> lengths, double scale, const StorageView& y);

}  // namespace assay::contract
