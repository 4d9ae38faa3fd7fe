// Properties of y[t] = table[ids[t]] (obligations of contracts/embedding.yaml).
#include "embedding_obligations.hpp"

#include <numeric>

#include "falsify/properties/inputs/token_ids.hpp"
#include "falsify/properties/shared/elementwise.hpp"

namespace assay::falsify {

void embedding::make_inputs(Problem& problem, Strategy strategy, Random& random) {
  if (strategy == Strategy::directed) make_repeated(problem.values[0], problem.dims[1], random);
}

Outcome embedding::identity(Trial& trial) {
  Problem problem = trial.problem();
  const Index v = problem.dims[1];
  problem.dims[0] = v;
  problem.values[0].resize(static_cast<std::size_t>(v));
  std::iota(problem.values[0].begin(), problem.values[0].end(), 0.0F);
  const Run run = trial.run(problem);
  return compare_bits("y", problem.shape(2), run.outputs[0], problem.values[1], "all rows in order, against the table");
}

Outcome embedding::batch_invariance(Trial& trial) { return independent_of_batch(trial); }

audit::Subject embedding::audited() {
  return {.sums = {{.says = "y[0,0]",
                    .terms = audit::Terms::values,
                    .dims = {4, 8, 64},
                    .count = 1,
                    .left = {1},
                    .result = {2}}}};
}

}  // namespace assay::falsify
