// Properties of rope_table_backward (obligations of contracts/rope_table_backward.yaml).
#include "rope_table_backward_obligations.hpp"

#include <algorithm>
#include <cmath>

#include "falsify/properties/shared/rope_table.hpp"

namespace assay::falsify {
namespace rope_table_backward {
namespace {

constexpr RopeTableTensors kTensors{.from = 3, .cosines = 0, .sines = 1, .positions = 2, .to = 4};

}  // namespace
}  // namespace rope_table_backward

void rope_table_backward::make_inputs(Problem& problem, Strategy strategy, Random& random) {
  rope_table_inputs(problem, kTensors, strategy, random);
}

Outcome rope_table_backward::slicing(Trial& trial) { return rows_are_independent(trial); }
Outcome rope_table_backward::quarter_turns(Trial& trial) { return rope_table_quarter_turns(trial, kTensors, -1); }
Outcome rope_table_backward::scaling(Trial& trial) { return rope_table_scaling(trial, kTensors); }
Outcome rope_table_backward::relabelling(Trial& trial) { return rope_table_relabelling(trial, kTensors); }

Outcome rope_table_backward::adjoint(Trial& trial) {
  const Problem problem = trial.problem(Strategy::gaussian);
  Random random = trial.random("x");
  std::vector<float> x(problem.values[3].size());
  for (float& v : x) v = static_cast<float>(random.between(-128, 127));
  const Problem forward{&operation("rope_table"),
                        problem.dims,
                        problem.params,
                        {x, problem.values[0], problem.values[1], problem.values[2], {}},
                        problem.storage};
  const Run run = trial.run(problem);
  const auto want = trial.oracle(problem), y = trial.oracle(forward);
  const Index rows = problem.dims[0], heads = problem.dims[1], d = problem.dims[2];
  std::vector<double> along_x, along_dy, bound;
  for (Index head = 0; head < rows * heads; ++head) {
    double of_x = 0, of_dy = 0, error = 0;
    for (Index j = 0; j < d; ++j) {
      const auto at = static_cast<std::size_t>(head * d + j);
      of_x += static_cast<double>(x[at]) * run.outputs[0][at];
      of_dy += static_cast<double>(problem.values[3][at]) * y[0][at].value;
      error += std::fabs(static_cast<double>(x[at])) * want[0][at].error +
               0x1p-44 * (std::fabs(x[at] * want[0][at].value) + std::fabs(problem.values[3][at] * y[0][at].value));
    }
    along_x.push_back(of_x), along_dy.push_back(of_dy), bound.push_back(error * (1 + 0x1p-20));
  }
  return compare_within("products of heads of dx and x", Shape{rows, heads}, along_x, along_dy, bound);
}

audit::Subject rope_table_backward::audited() {
  return {.sums = {{.says = "dx[0,0,0], a pair's two products",
                    .terms = audit::Terms::values,
                    .dims = {4, 2, 64, 4},
                    .count = 2,
                    .left = {3, 0, 1},
                    .result = {4},
                    .background = [](Problem& p) {
                      p.params[0] = 1;
                      std::ranges::fill(p.values[0], 1.0F);
                      std::ranges::fill(p.values[1], 1.0F);
                    }}}};
}

}  // namespace assay::falsify
