// Properties of rmsnorm (obligations of contracts/rmsnorm.yaml).
#include "rmsnorm_obligations.hpp"

#include <algorithm>
#include <cmath>

#include "falsify/properties/shared/rows.hpp"

namespace assay::falsify {

/// Makes rows of several kinds: a mean square near eps, where eps matters most; x so small that eps dominates; a single
/// nonzero element; zeros; and equal elements, whose n-th part shows the divisor.
void rmsnorm::make_inputs(Problem& problem, Strategy strategy, Random& random) {
  if (strategy != Strategy::directed) return;
  const Index rows = problem.dims[0], n = problem.dims[1];
  const double root = std::sqrt(problem.params[0]);
  std::vector<float>& x = problem.values[0];
  for (Index i = 0; i < rows; ++i) {
    const auto kind = random.below(6);
    const double scale = kind < 2    ? root * std::exp2(4 * random.uniform() - 2)
                         : kind == 2 ? root * 0x1p-9
                         : kind == 3 ? 0x1p-6
                                     : 1;
    const Index dominant = random.chance(0.5) ? n - 1 : static_cast<Index>(random.below(static_cast<std::uint64_t>(n)));
    for (Index j = 0; j < n; ++j) {
      double value = scale * random.gaussian();
      if (kind == 3 && j == dominant) value = std::copysign(4096 * root, value);
      if (kind == 4) value = 0;
      if (kind == 5) value = std::copysign(root, value);
      x[static_cast<std::size_t>(i * n + j)] = static_cast<float>(value);
    }
  }
}

Outcome rmsnorm::slicing(Trial& trial) { return rows_are_independent(trial); }

Outcome rmsnorm::scaling(Trial& trial) {
  Problem problem = trial.problem();
  if (!scales_exactly(problem, 0, 2)) problem = trial.problem(Strategy::gaussian);
  Random random = trial.random("scaling");
  const int a = random.chance(0.5) ? 1 : 2;
  // Keep the scaled eps within its range.
  double& eps = problem.params[0];
  eps = static_cast<float>(eps);
  if (std::ldexp(eps, 2 * a) > trial.op().params[0].max) eps = std::ldexp(eps, -2 * a);
  return scales_by_powers(trial, problem, {.tensor = 0, .exponent = a, .exponents = {0, -a}}, {std::ldexp(eps, 2 * a)});
}

Outcome rmsnorm::permutation(Trial& trial) { return columns_permute(trial, "n"); }

audit::Subject rmsnorm::audited() {
  return {.sums = {{.says = "the squares of rrms[0] over n",
                    .terms = audit::Terms::squares,
                    .dims = {4, 32},
                    .count = 32,
                    .left = {0},
                    .result = {3}},
                   {.says = "y[0,0] where eps decides",
                    .terms = audit::Terms::positive,
                    .dims = {4, 32},
                    .count = 1,
                    .left = {0},
                    .result = {2},
                    .lift = -14,
                    .background = [](Problem& p) { std::ranges::fill(p.values[1], 1.0F); }}}};
}

}  // namespace assay::falsify
