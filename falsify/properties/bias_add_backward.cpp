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

Outcome bias_add_backward::row_additivity(Trial& trial) {
  const Problem whole = trial.problem();
  const Index m = whole.dims[0], n = whole.dims[1];
  Random random = trial.random("split");
  const Index cut = random.between(0, m);
  Problem head = whole, tail = whole;
  head.dims[0] = cut;
  head.values[0].resize(static_cast<std::size_t>(cut * n));
  tail.dims[0] = m - cut;
  tail.values[0].erase(tail.values[0].begin(), tail.values[0].begin() + cut * n);
  std::vector<double> parts(static_cast<std::size_t>(n)), bound = bounds_of(trial.oracle(whole)[1]);
  for (const Problem* part : {&head, &tail}) {
    const Run run = trial.run(*part);
    const std::vector<double> own = bounds_of(trial.oracle(*part)[1]);
    for (std::size_t j = 0; j < parts.size(); ++j) {
      parts[j] += static_cast<double>(run.outputs[1][j]);
      bound[j] += own[j];
    }
  }
  return compare_within("dbias", whole.shape(2), widened(trial.run(whole).outputs[1]), parts, bound);
}

audit::Subject bias_add_backward::audited() {
  return {.sums = {{.says = "dbias[0] over m",
                    .terms = audit::Terms::values,
                    .dims = {64, 16},
                    .count = 64,
                    .left = {0, 0, 16},
                    .result = {2}}}};
}

}  // namespace assay::falsify
