// Input generators that layer_norm.yaml names beyond the engine's own checks (optional).
#include <cmath>

#include "falsify/properties/shared/rows.hpp"
#include "layer_norm_obligations.hpp"

namespace assay::falsify {

/// Draws rows whose variance is near eps, where eps matters most, around 0 or around a relatively large mean.
void layer_norm::make_inputs(Problem& problem, Strategy strategy, Random& random) {
  if (strategy != Strategy::directed) return;
  const Index rows = problem.dims[0], n = problem.dims[1];
  for (Index i = 0; i < rows; ++i) {
    const double scale = std::sqrt(problem.params[0]) * std::exp2(4 * random.uniform() - 2);
    const double mean = random.chance(0.5) ? 0 : 16 * scale;
    for (Index j = 0; j < n; ++j)
      problem.values[0][static_cast<std::size_t>(i * n + j)] = static_cast<float>(mean + scale * random.gaussian());
  }
}

Outcome layer_norm::permutation(Trial& trial) { return columns_permute(trial, "n"); }

}  // namespace assay::falsify
