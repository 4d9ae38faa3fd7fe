// Properties of silu_mul_backward (obligations of contracts/silu_mul_backward.yaml).
#include "silu_mul_backward_obligations.hpp"

#include <algorithm>

#include "falsify/properties/inputs/gates.hpp"
#include "falsify/properties/shared/rows.hpp"

namespace assay::falsify {

void silu_mul_backward::make_inputs(Problem& problem, Strategy strategy, Random& random) {
  if (strategy == Strategy::directed) draw_gates(problem.values[0], random);
}

Outcome silu_mul_backward::slicing(Trial& trial) { return rows_are_independent(trial); }

Outcome silu_mul_backward::scaling(Trial& trial) {
  const Problem problem = trial.problem(Strategy::gaussian);
  const int a = static_cast<int>(trial.random("scaling").between(1, 4));
  return scales_by_powers(trial, problem, {.tensor = 2, .exponent = a, .exponents = {a, a}}, {});
}

audit::Subject silu_mul_backward::audited() {
  return {.sums = {{.says = "dup[0,0]",
                    .terms = audit::Terms::values,
                    .dims = {4, 64},
                    .count = 1,
                    .left = {2},
                    .result = {4},
                    .scale = 128,
                    .background = [](Problem& p) { std::ranges::fill(p.values[0], 128.0F); }}}};
}

}  // namespace assay::falsify
