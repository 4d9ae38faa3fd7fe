// Properties of the gradients of y = x + bias (obligations of contracts/bias_add_backward.yaml).
#include "bias_add_backward_obligations.hpp"

#include "falsify/properties/shared/elementwise.hpp"

namespace assay::falsify {

void bias_add_backward::make_inputs(Problem& problem, Strategy strategy, Random&) {
  if (strategy == Strategy::distinct_index) keep_sums_exact(problem.values[0], problem.dims[0]);
}

Outcome bias_add_backward::passed_on(Trial& trial) {
  const Problem problem = trial.problem();
  const Run run = trial.run(problem);
  return compare_bits("dx", problem.shape(1), run.outputs[0], problem.values[0], "dx, against dy");
}

Outcome bias_add_backward::scaling(Trial& trial) { return scales_with(trial, {0}); }

Outcome bias_add_backward::row_additivity(Trial& trial) { return rows_add_up(trial, 1); }

audit::Subject bias_add_backward::audited() {
  return {.sums = {{.says = "dbias[0] over m",
                    .terms = audit::Terms::values,
                    .dims = {64, 16},
                    .count = 64,
                    .left = {0, 0, 16},
                    .result = {2}}}};
}

}  // namespace assay::falsify
