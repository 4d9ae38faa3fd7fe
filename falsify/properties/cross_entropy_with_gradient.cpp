// Properties of the cross-entropy with its gradient (obligations of contracts/cross_entropy_with_gradient.yaml).
#include <cmath>

#include "cross_entropy_with_gradient_obligations.hpp"
#include "falsify/properties/shared/cross_entropy.hpp"

namespace assay::falsify {

/// Gaussian: the targets have a weight, without which the mean has no gradient.
void cross_entropy_with_gradient::make_inputs(Problem& problem, Strategy strategy, Random& random) {
  cross_entropy_inputs(problem, strategy, random);
  float& first = problem.values[2][static_cast<std::size_t>(problem.values[1][0])];
  if (strategy == Strategy::gaussian && first == 0) first = 1;
}

Outcome cross_entropy_with_gradient::shift(Trial& trial) { return cross_entropy_shift(trial); }
Outcome cross_entropy_with_gradient::one_hot_limit(Trial& trial) { return cross_entropy_one_hot_limit(trial); }
Outcome cross_entropy_with_gradient::weight_scaling(Trial& trial) { return cross_entropy_weight_scaling(trial, 0, 1); }
Outcome cross_entropy_with_gradient::row_permutation(Trial& trial) { return cross_entropy_row_permutation(trial); }

Outcome cross_entropy_with_gradient::row_sum(Trial& trial) {
  const Problem problem = trial.problem(Strategy::gaussian);
  const Index rows = problem.dims[0], classes = problem.dims[1];
  const Run run = trial.run(problem);
  const auto oracle = trial.oracle(problem);
  std::vector<double> sums, bounds;
  for (Index i = 0; i < rows; ++i) {
    double sum = 0, bound = 0;
    for (Index j = 0; j < classes; ++j) {
      const auto at = static_cast<std::size_t>(i * classes + j);
      sum += run.outputs[3][at];
      bound += oracle[3][at].error + 0x1p-50 * std::fabs(oracle[3][at].value);
    }
    sums.push_back(sum);
    bounds.push_back(bound);
  }
  Outcome outcome =
      compare_within("gradient, sum of a row", Shape{rows}, sums, std::vector<double>(sums.size()), bounds);
  outcome.nonzero = outcome.elements;  // the claim is about zeros
  return outcome;
}

audit::Subject cross_entropy_with_gradient::audited() {
  return {.sums = {{.says = "logsumexp[0] over classes",
                    .terms = audit::Terms::exponentials,
                    .dims = {4, 32},
                    .count = 32,
                    .left = {0},
                    .result = {5}},
                   {.says = "total over rows",
                    .terms = audit::Terms::values,
                    .dims = {32, 32},
                    .count = 32,
                    .left = {2},
                    .result = {4},
                    .scale = 128,
                    .background = &losses_of_128}},
          .no_rows = "the gradient of the mean is divided by the weights of all rows"};
}

}  // namespace assay::falsify
