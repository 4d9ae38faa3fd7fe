// The certificate of rmsnorm.
#pragma once

#include "contract/certificates.hpp"

namespace assay::contract {

/// Checks mean((y[i,j] / weight[j])²) + eps rrms[i]² = 1 in every row. For exact y and rrms the left side is rrms²
/// (mean(x²) + eps) = 1. Elements whose weight or result is too small to divide count as x[i,j] rrms[i]. With relative
/// errors rho of rrms and delta of y (two roundings and that of its storage) the left side is rrms²(1+rho)² ((1+delta)²
/// mean(x²) + eps) for the exact rrms, so it is off by at most (1+rho)² - 1 + (2 delta + delta²) mean((y / weight)²);
/// Bounded gives rho, under current_arithmetic(). Reads y once, x only if needed; O(rows n) in double. If rrms is 0 or
/// not finite in a row, x must have a non-finite element there, or squares that may overflow.
Certified unit_mean_square(const StorageView& x, View<const float> weight, const StorageView& y, View<const float> rrms,
                           double eps);

}  // namespace assay::contract
