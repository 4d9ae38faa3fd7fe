// Properties of rmsnorm_backward (obligations of contracts/rmsnorm_backward.yaml).
#include "rmsnorm_backward_obligations.hpp"

#include <algorithm>
#include <cmath>

#include "falsify/properties/shared/rmsnorm.hpp"

namespace assay::falsify {

namespace rmsnorm_backward {
namespace {

constexpr RmsnormGradientTensors kTensors{.x = 0, .weight = 1, .dy = 3, .dx = 4};

}  // namespace
}  // namespace rmsnorm_backward

/// Sets rrms to the value that the forward pass saves, for one of its eps.
void rmsnorm_backward::make_inputs(Problem& problem, Strategy strategy, Random& random) {
  const Index rows = problem.dims[0], n = problem.dims[1];
  const double eps = random.chance(0.5) ? 1e-6 : random.chance(0.5) ? 1e-5 : random.chance(0.5) ? 1e-2 : 1e-8;
  rmsnorm_gradient_inputs(problem, kTensors, strategy, random, eps);
  for (Index i = 0; i < rows; ++i) {
    double squares = 0;
    for (Index j = 0; j < n; ++j) {
      const double x = problem.values[0][static_cast<std::size_t>(i * n + j)];
      squares += x * x;
    }
    problem.values[2][static_cast<std::size_t>(i)] =
        static_cast<float>(1 / std::sqrt(squares / static_cast<double>(n) + eps));
  }
}

Outcome rmsnorm_backward::slicing(Trial& trial) { return rows_are_independent(trial); }

Outcome rmsnorm_backward::scaling(Trial& trial) {
  const Problem problem = trial.problem();
  const int a = static_cast<int>(trial.random("scaling").between(1, 4));
  return scales_by_powers(trial, problem, {.tensor = 3, .exponent = a, .exponents = {a, a}}, {});
}

Outcome rmsnorm_backward::orthogonality(Trial& trial) {
  const Problem problem = trial.problem();
  return rmsnorm_gradient_orthogonality(trial, problem, kTensors, [&](Index i, double) {
    return static_cast<double>(problem.values[2][static_cast<std::size_t>(i)]);
  });
}

namespace rmsnorm_backward {
namespace {

/// Makes weight and rrms 1, and the last element of each row x = 1, dy = 0: its dx is -1/n of the projection.
void unscaled(Problem& p) {
  std::ranges::fill(p.values[1], 1.0F);
  std::ranges::fill(p.values[2], 1.0F);
  for (std::size_t last = static_cast<std::size_t>(p.dims[1]) - 1; last < p.values[0].size();
       last += static_cast<std::size_t>(p.dims[1]))
    p.values[0][last] = 1;
}

}  // namespace
}  // namespace rmsnorm_backward

audit::Subject rmsnorm_backward::audited() {
  return {.sums = {{.says = "dweight[0] over rows",
                    .terms = audit::Terms::products,
                    .dims = {64, 16},
                    .count = 64,
                    .left = {3, 0, 16},
                    .right = {0, 0, 16},
                    .result = {5},
                    .background = &unscaled},
                   {.says = "the projection of dx[0,63] over n",
                    .terms = audit::Terms::products,
                    .dims = {4, 64},
                    .count = 63,
                    .left = {3},
                    .right = {0},
                    .result = {4, 63},
                    .scale = -1.0 / 64,
                    .background = &unscaled}}};
}

}  // namespace assay::falsify
