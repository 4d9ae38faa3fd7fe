// Properties of the mean over tokens (obligations of contracts/mean_pool.yaml).
#include "mean_pool_obligations.hpp"

#include <algorithm>
#include <limits>

#include "falsify/properties/inputs/pooling.hpp"
#include "falsify/properties/shared/elementwise.hpp"

namespace assay::falsify {
namespace mean_pool {
namespace {

/// Puts NaNs, infinities and large numbers into the padding, which no kernel may read.
void corrupt_padding(Problem& problem, Random& random) {
  for_padding(problem.values[0], problem.values[1], problem.dims[1], problem.dims[2], [&](float& x) {
    const float spoiled[] = {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(), -3e38F,
                             1e20F};
    x = spoiled[random.below(4)];
  });
}

}  // namespace
}  // namespace mean_pool

void mean_pool::make_inputs(Problem& problem, Strategy strategy, Random& random) {
  if (strategy == Strategy::directed) make_extreme(problem.values[1], problem.dims[1], random);
  if (is_exact(strategy)) make_powers_of_two(problem.values[1]);
  if (strategy == Strategy::distinct_index) keep_sums_exact(problem.values[0], problem.dims[1]);
  if (strategy == Strategy::directed || strategy == Strategy::nonfinite) corrupt_padding(problem, random);
}

Outcome mean_pool::padding_ignored(Trial& trial) {
  const Problem problem = trial.problem();
  Problem other = problem;
  Random random = trial.random("padding");
  corrupt_padding(other, random);
  const Run plain = trial.run(problem), spoiled = trial.run(other);
  return trial.related(compare_bits("y", problem.shape(2), spoiled.outputs[0], plain.outputs[0],
                                    "with spoiled padding, against the same tokens"),
                       Related::always, {{problem, plain}, {other, spoiled}});
}

Outcome mean_pool::scaling(Trial& trial) { return scales_with(trial, {0}); }
Outcome mean_pool::batch_invariance(Trial& trial) { return independent_of_batch(trial); }

audit::Subject mean_pool::audited() {
  return {.sums = {{.says = "y[0,0] over s",
                    .terms = audit::Terms::values,
                    .dims = {4, 64, 16},
                    .count = 64,
                    .left = {0, 0, 16},
                    .result = {2},
                    .scale = 1.0 / 64,
                    .background = [](Problem& p) { std::ranges::fill(p.values[1], static_cast<float>(p.dims[1])); }}}};
}

}  // namespace assay::falsify
