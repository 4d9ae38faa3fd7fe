// Properties of silu_mul (obligations of contracts/silu_mul.yaml).
#include "silu_mul_obligations.hpp"

#include <cmath>

#include "core/half.hpp"
#include "falsify/properties/inputs/gates.hpp"
#include "falsify/properties/shared/rows.hpp"

namespace assay::falsify {

void silu_mul::make_inputs(Problem& problem, Strategy strategy, Random& random) {
  if (strategy == Strategy::directed) draw_gates(problem.values[0], random);
}

Outcome silu_mul::slicing(Trial& trial) { return rows_are_independent(trial); }

Outcome silu_mul::scaling(Trial& trial) {
  Problem problem = trial.problem();
  // Between 1 and 3, so that no result is subnormal in any storage.
  for (int t : {0, 1})
    for (float& x : problem.values[static_cast<std::size_t>(t)])
      x = stored(problem.storage, std::copysign(1 + std::fmin(std::fabs(x), 2.0F), x));
  const int a = static_cast<int>(trial.random("scaling").between(1, 3));
  return scales_by_powers(trial, problem, {.tensor = 1, .exponent = a, .exponents = {a}}, {});
}

Outcome silu_mul::reflection(Trial& trial) {
  const Problem plain = trial.problem();
  Problem mirrored = plain;
  for (float& g : mirrored.values[0]) g = -g;
  const Run run = trial.run(plain), other = trial.run(mirrored);
  const std::vector<double> of_plain = bounds_of(trial.oracle(plain)[0]),
                            of_mirrored = bounds_of(trial.oracle(mirrored)[0]);
  std::vector<double> got, want, bound;
  for (std::size_t i = 0; i < of_plain.size(); ++i) {
    const double product = static_cast<double>(plain.values[0][i]) * plain.values[1][i];
    // Infinite results have no difference: other obligations check their class.
    const bool finite =
        std::isfinite(run.outputs[0][i]) && std::isfinite(other.outputs[0][i]) && std::isfinite(product);
    got.push_back(finite ? static_cast<double>(run.outputs[0][i]) - other.outputs[0][i] : 0);
    want.push_back(finite ? product : 0);
    bound.push_back((of_plain[i] + of_mirrored[i]) * (1 + 0x1p-20) + std::fabs(want.back()) * 0x1p-50);
  }
  return compare_within("y", plain.shape(2), got, want, bound);
}

audit::Subject silu_mul::audited() {
  return {.sums = {{.says = "y[0,0]",
                    .terms = audit::Terms::products,
                    .dims = {4, 64},
                    .count = 1,
                    .left = {0},
                    .right = {1},
                    .result = {2},
                    .lift = 7}}};
}

}  // namespace assay::falsify
