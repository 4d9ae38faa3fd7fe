// Properties of rmsnorm_eps_backward (obligations of contracts/rmsnorm_eps_backward.yaml).
#include "rmsnorm_eps_backward_obligations.hpp"

#include <algorithm>
#include <cmath>

#include "falsify/properties/shared/rmsnorm.hpp"

namespace assay::falsify {
namespace rmsnorm_eps_backward {
namespace {

constexpr RmsnormGradientTensors kTensors{.x = 0, .weight = 1, .dy = 2, .dx = 3};

}  // namespace
}  // namespace rmsnorm_eps_backward

/// Directed: some rows are zeros, too, where eps alone makes rrms.
void rmsnorm_eps_backward::make_inputs(Problem& problem, Strategy strategy, Random& random) {
  rmsnorm_gradient_inputs(problem, kTensors, strategy, random, problem.params[0]);
  if (strategy != Strategy::directed) return;
  const Index n = problem.dims[1];
  for (Index i = 0; i < problem.dims[0]; ++i)
    if (random.chance(0.1)) std::fill_n(problem.values[kTensors.x].begin() + i * n, n, 0.0F);
}

Outcome rmsnorm_eps_backward::slicing(Trial& trial) { return rows_are_independent(trial); }

Outcome rmsnorm_eps_backward::scaling(Trial& trial) {
  const Problem problem = trial.problem();
  const int a = static_cast<int>(trial.random("scaling").between(1, 4));
  return scales_by_powers(trial, problem, {.tensor = 2, .exponent = a, .exponents = {a, a}}, problem.params);
}

Outcome rmsnorm_eps_backward::input_scaling(Trial& trial) {
  Problem problem = trial.problem();
  if (!scales_exactly(problem, 0, 2)) problem = trial.problem(Strategy::gaussian);
  const int a = trial.random("scaling").chance(0.5) ? 1 : 2;
  // Keep the scaled eps within its range.
  double& eps = problem.params[0];
  eps = static_cast<float>(eps);
  if (std::ldexp(eps, 2 * a) > trial.op().params[0].max) eps = std::ldexp(eps, -2 * a);
  return scales_by_powers(trial, problem, {.tensor = 0, .exponent = a, .exponents = {-a, 0}}, {std::ldexp(eps, 2 * a)});
}

Outcome rmsnorm_eps_backward::orthogonality(Trial& trial) {
  const Problem problem = trial.problem();
  return rmsnorm_gradient_orthogonality(trial, problem, kTensors, [&](Index, double mean_square) {
    return 1 / std::sqrt(mean_square + problem.params[0]);
  });
}

namespace rmsnorm_eps_backward {
namespace {

/// Makes rrms 1: x is 1 but in column 0, where it is v, and eps is what v^2 lacks of the mean. All of it is exact.
void unscaled(Problem& p) {
  constexpr float v = 1 - 0x1p-8F;
  const Index n = p.dims[1];
  p.params[0] = (1 - double{v} * v) / static_cast<double>(n);
  std::ranges::fill(p.values[0], 1.0F);
  for (Index i = 0; i < p.dims[0]; ++i) p.values[0][static_cast<std::size_t>(i * n)] = v;
  std::ranges::fill(p.values[1], 1.0F);
}

}  // namespace
}  // namespace rmsnorm_eps_backward

audit::Subject rmsnorm_eps_backward::audited() {
  return {.sums = {{.says = "dweight[1] over rows",
                    .terms = audit::Terms::values,
                    .dims = {64, 16},
                    .count = 64,
                    .left = {2, 1, 16},
                    .result = {4, 1},
                    .background = &unscaled},
                   {.says = "the projection of dx[0,63] over n",
                    .terms = audit::Terms::products,
                    .dims = {4, 64},
                    .count = 62,
                    .left = {2, 1},
                    .right = {1, 1},
                    .result = {3, 63},
                    .scale = -1.0 / 64,
                    .background = &unscaled},
                   {.says = "the squares in rrms of dx[0,31] over n",
                    .terms = audit::Terms::squares,
                    .dims = {4, 32},
                    .count = 31,
                    .left = {0},
                    .result = {3, 31},
                    .background = [](Problem& p) {  // dx[0,n-1] is rrms
                      std::ranges::fill(p.values[1], 1.0F);
                      p.values[2][static_cast<std::size_t>(p.dims[1]) - 1] = 1;
                    }}}};
}

}  // namespace assay::falsify
