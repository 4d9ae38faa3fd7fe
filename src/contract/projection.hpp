// Products of a strided float matrix with a few vectors, in double: what certificates are made of.
#pragma once

#include "core/view.hpp"

namespace assay::contract {

/// What is summed beside the product.
enum class Beside {
  nothing,
  magnitudes,  ///< second[i] = sum_j |m_ij| w_j
  squares,     ///< second[i] = sum_j m_ij^2
};

/// first[i] = sum_j m_ij x_j and second[i] as `beside` says, for m [rows, cols], x and w [cols]; either axis may be the
/// dense one. Sums run in several accumulators: any order, with or without FMA. w and second may be null where
/// `beside` does not use them.
void project(Beside beside, View<const float> m, const double* x, const double* w, double* first, double* second);

}  // namespace assay::contract
