// Properties of rope (obligations of contracts/rope.yaml).
#include "rope_obligations.hpp"

#include <cmath>

#include "falsify/properties/shared/rotary.hpp"

namespace assay::falsify {

void rope::make_inputs(Problem& problem, Strategy strategy, Random& random) {
  rope_positions(problem, strategy, random);
}

Outcome rope::slicing(Trial& trial) { return rows_are_independent(trial); }
Outcome rope::identity(Trial& trial) { return rope_identity(trial); }
Outcome rope::scaling(Trial& trial) { return rope_scaling(trial); }
Outcome rope::composition(Trial& trial) { return rope_composition(trial); }

Outcome rope::relative_position(Trial& trial) {
  // Compare <rotated(q, m + shift), rotated(k, n + shift)> with <rotated(q, m), rotated(k, n)>, head by head.
  Random random = trial.random("positions");
  const auto m = static_cast<double>(random.below(65536)), n = static_cast<double>(random.below(65536)),
             shift = static_cast<double>(random.below(65536));
  Problem q = rope_row_at(trial, m), k = rope_row_at(trial, n);
  for (float& x : k.values[0]) x = static_cast<float>(static_cast<int>(random.between(-128, 127)));
  const Index heads = q.dims[1], d = q.dims[2];
  std::vector<double> dots[2], bound(static_cast<std::size_t>(heads));
  for (int side = 0; side < 2; ++side) {
    const Run query = trial.run(q), key = trial.run(k);
    const auto of_query = trial.oracle(q), of_key = trial.oracle(k);
    const std::vector<double> query_bound = bounds_of(of_query[0]), key_bound = bounds_of(of_key[0]);
    for (Index head = 0; head < heads; ++head) {
      double dot = 0;
      for (Index j = 0; j < d; ++j) {
        const auto e = static_cast<std::size_t>(head * d + j);
        const double x = query.outputs[0][e], y = key.outputs[0][e];
        dot += x * y;
        bound[static_cast<std::size_t>(head)] +=
            std::fabs(x) * key_bound[e] + (std::fabs(y) + key_bound[e]) * query_bound[e] + 0x1p-50 * std::fabs(x * y);
      }
      dots[side].push_back(dot);
    }
    q.values[kPositions][0] += static_cast<float>(shift);
    k.values[kPositions][0] += static_cast<float>(shift);
  }
  return compare_within("dot products of heads in y", Shape{heads}, dots[1], dots[0], bound);
}

audit::Subject rope::audited() {
  return {.sums = {{.says = "y[0,0,0] at position 0",
                    .terms = audit::Terms::values,
                    .dims = {4, 2, 64},
                    .count = 1,
                    .left = {0},
                    .result = {2}}}};
}

}  // namespace assay::falsify
