#include "falsify/properties/shared/rmsnorm.hpp"

#include <cmath>

namespace assay::falsify {

void rmsnorm_gradient_inputs(Problem& problem, const RmsnormGradientTensors& t, Strategy strategy, Random& random,
                             double eps) {
  const Index rows = problem.dims[0], n = problem.dims[1];
  const bool directed = strategy == Strategy::directed;
  std::vector<float>&x = problem.values[t.x], &dy = problem.values[t.dy];
  for (Index i = 0; i < rows; ++i) {
    const bool small = directed && random.chance(0.5), aligned = directed && random.chance(0.5);
    for (Index j = 0; j < n; ++j) {
      const auto at = static_cast<std::size_t>(i * n + j);
      if (small) x[at] = static_cast<float>(x[at] * std::sqrt(eps));
      // With a weight of 0, dy has no effect.
      if (const float w = problem.values[t.weight][static_cast<std::size_t>(j)]; aligned && std::isfinite(x[at] / w))
        dy[at] = x[at] / w;
    }
  }
}

Outcome rmsnorm_gradient_orthogonality(Trial& trial, const Problem& problem, const RmsnormGradientTensors& t,
                                       const std::function<double(Index row, double mean_square)>& rrms) {
  const Index rows = problem.dims[0], n = problem.dims[1];
  const Run run = trial.run(problem);
  const auto want = trial.oracle(problem);
  std::vector<double> got, expected, bound;
  for (Index i = 0; i < rows; ++i) {
    double along = 0, upstream = 0, squares = 0, error = 0;
    bool bounded = true;  // else dx may be infinite, which has no product with x: other obligations check its class
    for (Index j = 0; j < n; ++j) {
      const auto at = static_cast<std::size_t>(i * n + j);
      const double x = problem.values[t.x][at];
      along += x * run.outputs[0][at];
      upstream += x * problem.values[t.weight][static_cast<std::size_t>(j)] * problem.values[t.dy][at];
      squares += x * x;
      bounded &= !want[0][at].may_overflow && std::isfinite(want[0][at].value);
      error += std::fabs(x) * want[0][at].error * (1 + 0x1p-20);
    }
    const double mean_square = squares / static_cast<double>(n), r = rrms(i, mean_square);
    got.push_back(bounded ? along : 0);
    expected.push_back(bounded ? r * upstream * (1 - r * r * mean_square) : 0);
    bound.push_back(bounded ? error : 0);
  }
  return compare_within("dx", Shape{rows}, got, expected, bound);
}

}  // namespace assay::falsify
