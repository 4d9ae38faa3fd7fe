// Properties of the gradient of the mean over tokens (obligations of contracts/mean_pool_backward.yaml).
#include "mean_pool_backward_obligations.hpp"

#include <algorithm>
#include <cmath>

#include "falsify/properties/inputs/pooling.hpp"
#include "falsify/properties/shared/elementwise.hpp"

namespace assay::falsify {

void mean_pool_backward::make_inputs(Problem& problem, Strategy strategy, Random& random) {
  if (strategy == Strategy::directed) make_extreme(problem.values[0], problem.dims[1], random);
  if (is_exact(strategy)) make_powers_of_two(problem.values[0]);
}

Outcome mean_pool_backward::scaling(Trial& trial) { return scales_with(trial, {1}); }

Outcome mean_pool_backward::adds_up(Trial& trial) {
  const Problem problem = trial.problem();
  const Run run = trial.run(problem);
  const std::vector<double> own = bounds_of(trial.oracle(problem)[0]);
  const Index s = problem.dims[1], h = problem.dims[2];
  std::vector<double> got(problem.values[1].size()), bound(got.size());
  for (std::size_t p = 0; p < own.size(); ++p) {
    const auto at = static_cast<std::size_t>(static_cast<Index>(p) / (s * h) * h + static_cast<Index>(p) % h);
    got[at] += static_cast<double>(run.outputs[0][p]);
    bound[at] += own[p] + 0x1p-50 * std::fabs(static_cast<double>(run.outputs[0][p]));
  }
  return compare_within("dx", problem.shape(1), got, widened(problem.values[1]), bound);
}

Outcome mean_pool_backward::batch_invariance(Trial& trial) { return independent_of_batch(trial); }

audit::Subject mean_pool_backward::audited() {
  return {.sums = {{.says = "dx[0,0,0]",
                    .terms = audit::Terms::values,
                    .dims = {4, 16, 16},
                    .count = 1,
                    .left = {1},
                    .result = {2},
                    .background = [](Problem& p) { std::ranges::fill(p.values[0], 1.0F); }}}};
}

}  // namespace assay::falsify
