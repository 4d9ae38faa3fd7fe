// Properties of y = x sigmoid(x) (obligations of contracts/silu.yaml).
#include "silu_obligations.hpp"

#include "falsify/properties/inputs/sigmoid.hpp"
#include "falsify/properties/shared/elementwise.hpp"

namespace assay::falsify {

void silu::make_inputs(Problem& problem, Strategy strategy, Random& random) {
  if (strategy == Strategy::directed) sensitive_arguments(problem.values[0], random);
}

Outcome silu::reflection(Trial& trial) {
  const Problem there = trial.problem();
  Problem mirrored = there;
  for (float& x : mirrored.values[0]) x = -x;
  const Run plain = trial.run(there), reflected = trial.run(mirrored);
  const std::vector<double> want = widened(there.values[0]);
  std::vector<double> got = widened(plain.outputs[0]), bound = bounds_of(trial.oracle(there)[0]);
  const std::vector<double> other_bound = bounds_of(trial.oracle(mirrored)[0]);
  for (std::size_t i = 0; i < got.size(); ++i) {
    got[i] -= static_cast<double>(reflected.outputs[0][i]);
    bound[i] += other_bound[i];
  }
  return compare_within("y", there.shape(1), got, want, bound);
}

Outcome silu::batch_invariance(Trial& trial) { return independent_of_batch(trial); }

audit::Subject silu::audited() {
  return {.sums = {{.says = "y[0,0]",
                    .terms = audit::Terms::values,
                    .dims = {4, 64},
                    .count = 1,
                    .left = {0},
                    .result = {1},
                    .lift = 7}}};
}

}  // namespace assay::falsify
