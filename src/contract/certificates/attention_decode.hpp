// The certificate of attention_decode.
#pragma once

#include "contract/certificates.hpp"

namespace assay::contract {

/// Place lengths[b] of cache [batch, capacity, kv_heads, d] holds the bits of row [batch, kv_heads, d]. O(size of row).
Certified appended(const StorageView& row, View<const std::int32_t> lengths, const StorageView& cache);

}  // namespace assay::contract
