// Properties shared by the gradients of rmsnorm, with and without a saved reciprocal RMS.
#pragma once

#include <functional>

#include "falsify/properties/shared/rows.hpp"

namespace assay::falsify {

/// Indices of the tensors of one contract; dx is its first output.
struct RmsnormGradientTensors {
  std::size_t x, weight, dy, dx;
};

/// Directed: makes rows with a mean square of about eps, and upstream gradients near x itself, which the projection
/// almost cancels.
void rmsnorm_gradient_inputs(Problem& problem, const RmsnormGradientTensors& t, Strategy strategy, Random& random,
                             double eps);

/// Checks that each row of dx times its row of x is rrms (a · x) (1 - rrms² mean(x²)), a = dy weight, within the bounds.
/// `rrms` returns the reciprocal RMS of a row with this mean square.
Outcome rmsnorm_gradient_orthogonality(Trial& trial, const Problem& problem, const RmsnormGradientTensors& t,
                                       const std::function<double(Index row, double mean_square)>& rrms);

}  // namespace assay::falsify
