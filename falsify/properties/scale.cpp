// Properties of y = alpha x (obligations of contracts/scale.yaml).
#include "scale_obligations.hpp"

#include <cmath>

#include "falsify/properties/shared/elementwise.hpp"

namespace assay::falsify {

/// On integers, with alpha a power of two, every order of evaluation is exact.
Outcome scale::exact_at_powers_of_two(Trial& trial) {
  Problem problem = trial.problem(Strategy::exact_integers);
  Random random = trial.random("power of two");
  problem.params[0] = random.either_sign(std::ldexp(1.0, static_cast<int>(random.between(-3, 3))));
  return trial.against_oracle(trial.exact_tier(), problem, trial.run(problem));
}

Outcome scale::scaling(Trial& trial) { return scales_with(trial, {0}); }

Outcome scale::oddness(Trial& trial) {
  const Problem problem = trial.problem();
  Problem mirrored = problem;
  for (float& x : mirrored.values[0]) x = -x;
  const Run plain = trial.run(problem), negated = trial.run(mirrored);
  std::vector<float> want = plain.outputs[0];
  for (float& y : want) y = -y;
  return trial.related(
      compare_bits("y", problem.shape(1), negated.outputs[0], want, "-x scaled, against the negated multiple of x"),
      Related::always, {{problem, plain}, {mirrored, negated}});
}

Outcome scale::batch_invariance(Trial& trial) { return independent_of_batch(trial); }

audit::Subject scale::audited() {
  return {.sums = {{.says = "y[0,0]",
                    .terms = audit::Terms::values,
                    .dims = {4, 64},
                    .count = 1,
                    .left = {0},
                    .result = {1},
                    .background = [](Problem& p) { p.params[0] = 1; }}}};
}

}  // namespace assay::falsify
