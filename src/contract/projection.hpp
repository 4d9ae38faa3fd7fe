// Products of a strided float matrix with a few vectors, in double: the building block of certificates.
#pragma once

#include "core/view.hpp"

namespace assay::contract {

/// Second sum, computed together with the product.
enum class SecondSum {
  nothing,
  magnitudes,  ///< second[i] = sum_j |m_ij| w_j
  squares,     ///< second[i] = sum_j m_ij^2
};

/// Computes first[i] = sum_j m_ij x_j, and second[i] as selected by the first argument, for m [rows, cols], x and w
/// [cols]. Either axis may be dense. Sums use several accumulators, in any order, with or without FMA. w and second may
/// be null if unused.
void project(SecondSum beside, View<const float> m, const double* x, const double* w, double* first, double* second);

}  // namespace assay::contract
