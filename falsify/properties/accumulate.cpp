// Properties of dst = dst + alpha src (obligations of contracts/accumulate.yaml).
#include "accumulate_obligations.hpp"

#include <cmath>

#include "falsify/properties/shared/elementwise.hpp"

namespace assay::falsify {

/// On integers, with alpha a power of two, every order of evaluation is exact.
Outcome accumulate::exact_at_powers_of_two(Trial& trial) {
  Problem problem = trial.problem(Strategy::exact_integers);
  Random random = trial.random("power of two");
  problem.params[0] = random.either_sign(std::ldexp(1.0, static_cast<int>(random.between(-3, 3))));
  return trial.against_oracle(trial.exact_tier(), problem, trial.run(problem));
}

Outcome accumulate::scaling(Trial& trial) { return scales_with(trial, {0, 1}); }

Outcome accumulate::undone(Trial& trial) {
  const Problem there = trial.problem(Strategy::exact_integers);
  Problem plus = there;
  plus.params[0] = 1;
  Problem minus = plus;
  minus.params[0] = -1;
  minus.values[0] = trial.run(plus).outputs[0];
  const Run back = trial.run(minus);
  Outcome outcome = trial.against_oracle(Tier::exact, minus, back);
  std::vector<Bounded> want;
  for (float x : there.values[0]) want.emplace_back(x, 0, 0, false);
  outcome &= compare(Tier::exact, "dst", there.shape(0), back.outputs[0], want);
  return outcome;
}

Outcome accumulate::batch_invariance(Trial& trial) { return independent_of_batch(trial); }

audit::Subject accumulate::audited() {
  return {.sums = {{.says = "dst[0,0]",
                    .terms = audit::Terms::values,
                    .dims = {4, 64},
                    .count = 2,
                    .left = {0},
                    .second = {1},
                    .param = 0,
                    .result = {0}}}};
}

}  // namespace assay::falsify
