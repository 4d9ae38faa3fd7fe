// Properties of dx = dy times the slope of x sigmoid(x) (obligations of contracts/silu_backward.yaml).
#include "silu_backward_obligations.hpp"

#include <algorithm>

#include "falsify/properties/inputs/sigmoid.hpp"
#include "falsify/properties/shared/elementwise.hpp"

namespace assay::falsify {

void silu_backward::make_inputs(Problem& problem, Strategy strategy, Random& random) {
  if (strategy == Strategy::directed) sensitive_arguments(problem.values[0], random);
}

/// Gaussian arguments: slopes of far negative ones are subnormal, and scaling rounds.
Outcome silu_backward::scaling(Trial& trial) { return scales_with(trial, {1}, Strategy::gaussian); }

Outcome silu_backward::reflection(Trial& trial) {
  Problem there = trial.problem();
  std::ranges::fill(there.values[1], 1.0F);
  Problem mirrored = there;
  for (float& x : mirrored.values[0]) x = -x;
  const Run plain = trial.run(there), reflected = trial.run(mirrored);
  std::vector<double> got = widened(plain.outputs[0]), bound = bounds_of(trial.oracle(there)[0]);
  const std::vector<double> other_bound = bounds_of(trial.oracle(mirrored)[0]);
  for (std::size_t i = 0; i < got.size(); ++i) {
    got[i] += static_cast<double>(reflected.outputs[0][i]);
    bound[i] += other_bound[i];
  }
  return compare_within("dx", there.shape(2), got, std::vector<double>(got.size(), 1.0), bound);
}

Outcome silu_backward::batch_invariance(Trial& trial) { return independent_of_batch(trial); }

audit::Subject silu_backward::audited() {
  return {.sums = {{.says = "dx[0,0]",
                    .terms = audit::Terms::values,
                    .dims = {4, 64},
                    .count = 1,
                    .left = {1},
                    .result = {2},
                    .background = [](Problem& p) { std::ranges::fill(p.values[0], 128.0F); }}}};
}

}  // namespace assay::falsify
