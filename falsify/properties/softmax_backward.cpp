// Properties of softmax_backward (obligations of contracts/softmax_backward.yaml).
#include "softmax_backward_obligations.hpp"

#include <cmath>

#include "falsify/properties/shared/losses.hpp"
#include "falsify/properties/shared/rows.hpp"

namespace assay::falsify {

/// Makes y a distribution in every row for Gaussian and directed inputs: the softmax of the drawn values, a sharp one
/// for directed inputs, with a nearly constant dy, whose mean the gradient subtracts.
void softmax_backward::make_inputs(Problem& problem, Strategy strategy, Random& random) {
  if (strategy != Strategy::gaussian && strategy != Strategy::directed && strategy != Strategy::runs) return;
  const Index rows = problem.dims[0], n = problem.dims[1];
  const bool directed = strategy == Strategy::directed;
  for (Index i = 0; i < rows; ++i) {
    float* const y = problem.values[0].data() + i * n;
    float* const dy = problem.values[1].data() + i * n;
    const double scale = directed ? 10 : 1, offset = directed && random.chance(0.5) ? 100 : 0;
    double sum = 0;
    if (strategy == Strategy::runs) {  // a stretch of the row has probability 0 or 1
      const TileScores scores(n, false, random);
      for (Index j = 0; j < n; ++j) y[j] = static_cast<float>(scores(j, random));
    }
    for (Index j = 0; j < n; ++j) sum += std::exp(scale * static_cast<double>(y[j]));
    for (Index j = 0; j < n; ++j) {
      const double p = std::exp(scale * static_cast<double>(y[j])) / sum;
      // subnormals do not scale exactly
      y[j] = strategy == Strategy::runs && p < 0x1p-40 ? 0.0F : static_cast<float>(p);
      dy[j] += static_cast<float>(offset);
    }
  }
}

Outcome softmax_backward::slicing(Trial& trial) { return rows_are_independent(trial); }
Outcome softmax_backward::permutation(Trial& trial) { return columns_permute(trial, "n"); }

Outcome softmax_backward::scaling(Trial& trial) {
  const Problem problem = trial.problem();
  const int a = static_cast<int>(trial.random("scaling").between(1, 4));
  return scales_by_powers(trial, problem, {.tensor = 1, .exponent = a, .exponents = {a}}, {});
}

audit::Subject softmax_backward::audited() {
  return {.sums = {{.says = "the sum in dx[0,63] over n",
                    .terms = audit::Terms::products,
                    .dims = {4, 64},
                    .count = 63,
                    .left = {1},
                    .right = {0},
                    .result = {2, 63},
                    .scale = -1,
                    .background = [](Problem& p) { p.values[0][static_cast<std::size_t>(p.dims[1]) - 1] = 1; }}}};
}

}  // namespace assay::falsify
