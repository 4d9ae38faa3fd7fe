// Properties of the gradient of sums of columns (obligations of contracts/column_sum_backward.yaml).
#include "column_sum_backward_obligations.hpp"

#include <cmath>

namespace assay::falsify {

Outcome column_sum_backward::adds_up(Trial& trial) {
  const Problem problem = trial.problem();
  const Index m = problem.dims[0], n = problem.dims[1];
  const Run run = trial.run(problem);
  std::vector<double> got(static_cast<std::size_t>(n)), want = got, bound = got;
  for (Index j = 0; j < n; ++j) {
    const auto column = static_cast<std::size_t>(j);
    for (Index i = 0; i < m; ++i)
      got[column] += static_cast<double>(run.outputs[0][static_cast<std::size_t>(i * n + j)]);
    want[column] = static_cast<double>(m) * static_cast<double>(problem.values[0][column]);
    bound[column] = 0x1p-50 * static_cast<double>(m) * std::fabs(want[column]) +
                    static_cast<double>(m) * (trial.kernel().arithmetic.flushes_subnormals ? 0x1p-126 : 0);
  }
  return compare_within("dx over m", Shape{n}, got, want, bound);
}

audit::Subject column_sum_backward::audited() {
  return {
      .sums = {
          {.says = "dx[0,0]", .terms = audit::Terms::values, .dims = {4, 64}, .count = 1, .left = {0}, .result = {1}}}};
}

}  // namespace assay::falsify
