// The certificate of rmsnorm.
#pragma once

#include "contract/certificates.hpp"

namespace assay::contract {

/// mean((y[i,j] / weight[j])²) + eps rrms[i]² = 1 in every row. For exact y and rrms that is
/// rrms² (mean(x²) + eps) = 1; elements whose weight or result is too small to divide count as x[i,j] rrms[i].
/// With relative errors rho of rrms and delta of y (two roundings and that of its storage) the left side is
/// rrms²(1+rho)² ((1+delta)² mean(x²) + eps) for the exact rrms, so it is off by at most
/// (1+rho)² - 1 + (2 delta + delta²) mean((y / weight)²): rho follows from Bounded, under current_arithmetic().
/// Reads y once, x only where needed; O(rows n) in double. Rows in which rrms is 0 or not finite must hold something
/// that is not finite, or squares that may overflow.
Certified unit_mean_square(const StorageView& x, View<const float> weight, const StorageView& y, View<const float> rrms,
                           double eps);

}  // namespace assay::contract
