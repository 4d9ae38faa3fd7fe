// Properties of the gradient of an embedding table (obligations of contracts/embedding_backward.yaml).
#include "embedding_backward_obligations.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "falsify/properties/inputs/token_ids.hpp"
#include "falsify/properties/shared/elementwise.hpp"

namespace assay::falsify {

void embedding_backward::make_inputs(Problem& problem, Strategy strategy, Random& random) {
  if (strategy == Strategy::directed) make_repeated(problem.values[0], problem.dims[1], random);
  if (strategy == Strategy::distinct_index) keep_sums_exact(problem.values[1], problem.dims[0]);
}

Outcome embedding_backward::scaling(Trial& trial) { return scales_with(trial, {1}); }

Outcome embedding_backward::adds_up(Trial& trial) {
  const Problem problem = trial.problem();
  const Run run = trial.run(problem);
  const std::vector<double> own = bounds_of(trial.oracle(problem)[0]);
  const auto h = static_cast<std::size_t>(problem.dims[2]);
  std::vector<double> got(h), want(h), bound(h);
  for (std::size_t p = 0; p < own.size(); ++p) {
    got[p % h] += static_cast<double>(run.outputs[0][p]);
    bound[p % h] +=
        own[p] + static_cast<double>(own.size()) * 0x1p-53 * std::fabs(static_cast<double>(run.outputs[0][p]));
  }
  for (std::size_t p = 0; p < problem.values[1].size(); ++p) {
    const auto x = static_cast<double>(problem.values[1][p]);
    want[p % h] += x;
    bound[p % h] += static_cast<double>(problem.values[1].size()) * 0x1p-53 * std::fabs(x);
  }
  return compare_within("dtable", Shape{problem.dims[2]}, got, want, bound);
}

Outcome embedding_backward::distinct_tokens(Trial& trial) {
  Problem problem = trial.problem();
  const Index tokens = std::min(problem.dims[0], problem.dims[1]), h = problem.dims[2];
  problem.dims[0] = tokens;
  std::vector<Index> rows(static_cast<std::size_t>(problem.dims[1]));
  std::iota(rows.begin(), rows.end(), Index{0});
  Random random = trial.random("permutation");
  for (std::size_t i = rows.size(); i > 1; --i) std::swap(rows[i - 1], rows[random.below(i)]);
  problem.values[0].assign(rows.begin(), rows.begin() + tokens);
  problem.values[1].resize(static_cast<std::size_t>(tokens * h));
  const Run run = trial.run(problem);
  std::vector<Bounded> want(run.outputs[0].size());
  for (Index t = 0; t < tokens; ++t)
    for (Index j = 0; j < h; ++j)
      want[static_cast<std::size_t>(rows[static_cast<std::size_t>(t)] * h + j)] =
          Bounded(problem.values[1][static_cast<std::size_t>(t * h + j)], 0, 0, false);
  return compare(Tier::exact, "dtable", problem.shape(2), run.outputs[0], want);
}

audit::Subject embedding_backward::audited() {
  return {.sums = {{.says = "dtable[0,0] over t",
                    .terms = audit::Terms::values,
                    .dims = {64, 4, 16},
                    .count = 64,
                    .left = {1, 0, 16},
                    .result = {2}}}};
}

}  // namespace assay::falsify
