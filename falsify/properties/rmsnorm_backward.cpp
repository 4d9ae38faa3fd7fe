// Properties of rmsnorm_backward (obligations of contracts/rmsnorm_backward.yaml).
#include "rmsnorm_backward_obligations.hpp"

#include <algorithm>
#include <cmath>

#include "falsify/properties/shared/rows.hpp"

namespace assay::falsify {

/// Sets rrms to the value that the forward pass saves, for one of its eps. Directed: rows with a mean square of about
/// eps, and upstream gradients near x itself, which the projection almost cancels.
void rmsnorm_backward::make_inputs(Problem& problem, Strategy strategy, Random& random) {
  const Index rows = problem.dims[0], n = problem.dims[1];
  const double eps = random.chance(0.5) ? 1e-6 : random.chance(0.5) ? 1e-5 : random.chance(0.5) ? 1e-2 : 1e-8;
  std::vector<float>&x = problem.values[0], &weight = problem.values[1], &rrms = problem.values[2],
  &dy = problem.values[3];
  const bool directed = strategy == Strategy::directed;
  for (Index i = 0; i < rows; ++i) {
    const auto at = [&](Index j) { return static_cast<std::size_t>(i * n + j); };
    const bool small = directed && random.chance(0.5), aligned = directed && random.chance(0.5);
    double squares = 0;
    for (Index j = 0; j < n; ++j) {
      if (small) x[at(j)] = static_cast<float>(x[at(j)] * std::sqrt(eps));
      // With a weight of 0, dy has no effect.
      if (const float w = weight[static_cast<std::size_t>(j)]; aligned && std::isfinite(x[at(j)] / w))
        dy[at(j)] = x[at(j)] / w;
      squares += static_cast<double>(x[at(j)]) * x[at(j)];
    }
    rrms[static_cast<std::size_t>(i)] = static_cast<float>(1 / std::sqrt(squares / static_cast<double>(n) + eps));
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
  const Index rows = problem.dims[0], n = problem.dims[1];
  const Run run = trial.run(problem);
  const auto want = trial.oracle(problem);
  std::vector<double> got, expected, bound;
  for (Index i = 0; i < rows; ++i) {
    const double rrms = problem.values[2][static_cast<std::size_t>(i)];
    double along = 0, upstream = 0, squares = 0, error = 0;
    bool bounded = true;  // else dx may be infinite, which has no product with x: other obligations check its class
    for (Index j = 0; j < n; ++j) {
      const auto at = static_cast<std::size_t>(i * n + j);
      const double x = problem.values[0][at];
      along += x * run.outputs[0][at];
      upstream += x * problem.values[1][static_cast<std::size_t>(j)] * problem.values[3][at];
      squares += x * x;
      bounded &= !want[0][at].may_overflow && std::isfinite(want[0][at].value);
      error += std::fabs(x) * want[0][at].error * (1 + 0x1p-20);
    }
    got.push_back(bounded ? along : 0);
    expected.push_back(bounded ? rrms * upstream * (1 - rrms * rrms * squares / static_cast<double>(n)) : 0);
    bound.push_back(bounded ? error : 0);
  }
  return compare_within("dx", Shape{rows}, got, expected, bound);
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
