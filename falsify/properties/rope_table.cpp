// Properties of rope_table (obligations of contracts/rope_table.yaml).
#include "rope_table_obligations.hpp"

#include <algorithm>
#include <cmath>

#include "falsify/properties/shared/rope_table.hpp"

namespace assay::falsify {
namespace rope_table {
namespace {

constexpr RopeTableTensors kTensors{.from = 0, .cosines = 1, .sines = 2, .positions = 3, .to = 4};

}  // namespace
}  // namespace rope_table

void rope_table::make_inputs(Problem& problem, Strategy strategy, Random& random) {
  rope_table_inputs(problem, kTensors, strategy, random);
}

Outcome rope_table::slicing(Trial& trial) { return rows_are_independent(trial); }
Outcome rope_table::quarter_turns(Trial& trial) { return rope_table_quarter_turns(trial, kTensors, 1); }
Outcome rope_table::scaling(Trial& trial) { return rope_table_scaling(trial, kTensors); }
Outcome rope_table::relabelling(Trial& trial) { return rope_table_relabelling(trial, kTensors); }

Outcome rope_table::like_rope(Trial& trial) {
  Problem problem = trial.problem(Strategy::gaussian);
  constexpr double kTheta = 10000;
  const Index half = problem.dims[2] / 2, places = problem.dims[3];
  for (Index p = 0; p < places; ++p)
    for (Index i = 0; i < half; ++i) {
      const double angle =
          static_cast<double>(p) * std::pow(kTheta, static_cast<double>(-i) / static_cast<double>(half));
      const auto at = static_cast<std::size_t>(p * half + i);
      problem.values[1][at] = static_cast<float>(std::cos(angle));
      problem.values[2][at] = static_cast<float>(std::sin(angle));
    }
  // In double, since a kernel that takes no cosine has no bound for one.
  std::vector<double> x(problem.values[0].begin(), problem.values[0].end()),
      positions(problem.values[3].begin(), problem.values[3].end()), want(x.size());
  const std::vector<View<double>> tensors{
      {x.data(), problem.shape(0)}, {positions.data(), problem.shape(3)}, {want.data(), problem.shape(4)}};
  oracle("rope").exact(tensors, std::vector{kTheta, problem.params[0], 0.0});
  const Run run = trial.run(problem);
  const auto own = trial.oracle(problem);
  std::vector<double> got(run.outputs[0].begin(), run.outputs[0].end()), bound = bounds_of(own[0]);
  const auto d = static_cast<std::size_t>(2 * half), h = static_cast<std::size_t>(half);
  for (std::size_t e = 0; e < got.size(); ++e) {
    // The tables are floats, and their angles err as double does.
    const std::size_t other = problem.params[0] != 0 ? e ^ 1U : e % d < h ? e + h : e - h;
    const double magnitude =
        std::fabs(static_cast<double>(problem.values[0][e])) + std::fabs(static_cast<double>(problem.values[0][other]));
    bound[e] += magnitude * (0x1p-25 + 0x1p-50 * static_cast<double>(places)) * (1 + 0x1p-20);
  }
  return compare_within("y", problem.shape(4), got, want, bound);
}

audit::Subject rope_table::audited() {
  return {.sums = {{.says = "y[0,0,0], a pair's two products",
                    .terms = audit::Terms::values,
                    .dims = {4, 2, 64, 4},
                    .count = 2,
                    .left = {0, 0, 1},
                    .result = {4},
                    .background = [](Problem& p) {
                      p.params[0] = 1;
                      std::ranges::fill(p.values[1], 1.0F);
                      std::ranges::fill(p.values[2], -1.0F);
                    }}}};
}

}  // namespace assay::falsify
