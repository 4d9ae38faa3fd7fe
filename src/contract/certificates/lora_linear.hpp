// The certificate of linear layers with an adapter.
#pragma once

#include "contract/certificates.hpp"

namespace assay::contract {

/// freivalds([x, t, 1], [W, scale B, bias]ᵀ, y) of contract/certificates.hpp, scale = alpha / r. A term of the adapter
/// costs the kernel one more product, with the scale. scale B is rounded here, by u of itself or half of 2^-149. Before
/// scaling, results may be 1/scale times as large, and underflow losses count scale times. Rows whose scale t overflows
/// and columns whose scale B overflows are left out: correct kernels differ there. x [s, in], weight [out, in], bias [0
/// or 1, out], t [s, r], b [out, r], y [s, out]; x, weight, bias and y of one storage format. O(s (in + r) + out (in +
/// r) + s out) extra memory.
Certified freivalds_lora(const StorageView& x, const StorageView& weight, const StorageView& bias, View<const float> t,
                         View<const float> b, double alpha, const StorageView& y);

}  // namespace assay::contract
