// The certificate of linear layers.
#pragma once

#include "contract/certificates.hpp"

namespace assay::contract {

/// freivalds([x, 1], [W, bias]ᵀ, y) of contract/certificates.hpp: the bias is a term of each sum, times 1. x [s, in],
/// weight [out, in], bias [0 or 1, out], y [s, out]. Without a bias nothing is copied; otherwise O(s in + out in) extra
/// memory.
Certified freivalds_linear(View<const float> x, View<const float> weight, View<const float> bias, View<const float> y);

}  // namespace assay::contract
