// The certificate of linear layers.
#pragma once

#include "contract/certificates.hpp"

namespace assay::contract {

/// freivalds([x, 1], [W, bias]ᵀ, y) of contract/certificates.hpp: the bias is a term of each sum, times 1. x [s, in],
/// weight [out, in], bias [0 or 1, out], y [s, out]. In float32 without a bias nothing is copied; otherwise O(s in + out
/// in + s out) extra memory.
Certified freivalds_linear(const StorageView& x, const StorageView& weight, const StorageView& bias,
                           const StorageView& y);

}  // namespace assay::contract
