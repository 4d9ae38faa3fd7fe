// The certificates of products with a matrix in NF4 codes.
#pragma once

#include <cstdint>

#include "contract/certificates.hpp"

namespace assay::contract {

/// freivalds(dy, W, dx) and freivalds(x, Wᵀ, y) of contract/certificates.hpp, W [n, k] decoded. The weights are exact
/// floats, so the bound is that of a product. In freivalds_nf4_nt the scale of a block may instead multiply the sum of
/// its products with x: rows whose |x| may sum beyond the largest float and columns with an infinite scale are left
/// out. O(n k) extra memory.
Certified freivalds_nf4(View<const float> dy, View<const std::uint8_t> codes, View<const float> absmax,
                        View<const float> dx);
Certified freivalds_nf4_nt(View<const float> x, View<const std::uint8_t> codes, View<const float> absmax,
                           View<const float> y);

}  // namespace assay::contract
