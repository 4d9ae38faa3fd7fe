// Properties of rope_backward (obligations of contracts/rope_backward.yaml).
#include "rope_backward_obligations.hpp"

#include <cmath>

#include "core/half.hpp"
#include "falsify/properties/shared/rotary.hpp"

namespace assay::falsify {

void rope_backward::make_inputs(Problem& problem, Strategy strategy, Random& random) {
  rope_positions(problem, strategy, random);
}

Outcome rope_backward::slicing(Trial& trial) { return rows_are_independent(trial); }
Outcome rope_backward::identity(Trial& trial) { return rope_identity(trial); }
Outcome rope_backward::scaling(Trial& trial) { return rope_scaling(trial); }
Outcome rope_backward::composition(Trial& trial) { return rope_composition(trial); }

Outcome rope_backward::undoes(Trial& trial) {
  const Problem plain = rope_problem(trial);
  Problem forward = plain, back = plain;
  forward.op = &operation("rope");
  const std::vector<Bounded> rotated = trial.oracle(forward)[0];
  double largest = 0;
  for (std::size_t e = 0; e < rotated.size(); ++e) {
    back.values[0][e] = stored(plain.storage, static_cast<float>(rotated[e].value));
    largest = std::max(largest, std::fabs(back.values[0][e] - rotated[e].value));
  }
  const Run run = trial.run(back);
  const auto want = trial.oracle(back);
  std::vector<double> got(run.outputs[0].begin(), run.outputs[0].end()),
      original(plain.values[0].begin(), plain.values[0].end()), bound = bounds_of(want[0]);
  for (double& b : bound) b += 2 * largest;  // storage error of the rotated rows, from both elements of a pair
  return compare_within("dx", plain.shape(kTo), got, original, bound);
}

audit::Subject rope_backward::audited() {
  return {.sums = {{.says = "dx[0,0,0] at position 0",
                    .terms = audit::Terms::values,
                    .dims = {4, 2, 64},
                    .count = 1,
                    .left = {0},
                    .result = {2}}}};
}

}  // namespace assay::falsify
