// The certificate of products with a matrix in Q4_K super-blocks.
#pragma once

#include <cstdint>

#include "contract/certificates.hpp"

namespace assay::contract {

/// freivalds(x, Wᵀ, y) of contract/certificates.hpp for W [n, k] in super-blocks. A kernel may sum codes times x and x
/// apart and scale these sums: the check is of [x, x] · [s q, -m]ᵀ, w = s q - m, whose bound covers both ways. Columns
/// with an infinite d or dmin are left out, where 0 times infinity need not occur, and rows with an infinite x or whose
/// sums may leave the range of float before they are scaled. O((m + n) k) extra memory.
Certified freivalds_q4_k_nt(View<const float> x, View<const std::uint8_t> blocks, View<const float> y);

}  // namespace assay::contract
