// Properties of y = x + alpha r (obligations of contracts/residual_add.yaml).
#include "residual_add_obligations.hpp"

#include <cmath>

#include "falsify/properties/shared/elementwise.hpp"

namespace assay::falsify {

/// On integers, with alpha a power of two, every order of evaluation is exact.
Outcome residual_add::exact_at_powers_of_two(Trial& trial) {
  Problem problem = trial.problem(Strategy::exact_integers);
  Random random = trial.random("power of two");
  problem.params[0] = random.either_sign(std::ldexp(1.0, static_cast<int>(random.between(-3, 3))));
  return trial.against_oracle(trial.exact_tier(), problem, trial.run(problem));
}

Outcome residual_add::scaling(Trial& trial) { return scales_with(trial, {0, 1}); }
Outcome residual_add::batch_invariance(Trial& trial) { return independent_of_batch(trial); }

audit::Subject residual_add::audited() {
  return {.sums = {{.says = "y[0,0]",
                    .terms = audit::Terms::values,
                    .dims = {4, 64},
                    .count = 2,
                    .left = {0},
                    .second = {1},
                    .param = 0,
                    .result = {2}}}};
}

}  // namespace assay::falsify
