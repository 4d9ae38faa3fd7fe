// Properties of y = code[q] absmax (obligations of contracts/nf4_dequantize.yaml).
#include "nf4_dequantize_obligations.hpp"

#include <algorithm>
#include <cmath>

#include "falsify/properties/shared/elementwise.hpp"
#include "falsify/properties/shared/nf4.hpp"

namespace assay::falsify {

void nf4_dequantize::make_inputs(Problem& problem, Strategy strategy, Random& random) {
  if (strategy != Strategy::directed) return;
  count_through_codes(problem, 0);
  // Scales adjacent to the largest one that is treated as 0.
  for (float& scale : problem.values[1])
    if (random.chance(0.3)) {
      const float beside = std::nextafter(kNf4Smallest, random.chance(0.5) ? 0.0F : 1.0F);
      scale = random.chance(0.5) ? beside : -beside;
    } else if (random.chance(0.2)) {
      scale = kNf4Smallest;
    }
}

Outcome nf4_dequantize::codebook(Trial& trial) {
  Problem problem = trial.problem();
  const Index n = problem.dims[0], k = problem.dims[1];
  std::ranges::fill(problem.values[1], 1.0F);
  Random random = trial.random("codebook");
  std::vector<float> want;
  for (Index j = 0; j < n; ++j) {
    const Index shift = random.between(0, 15);
    for (Index p = 0; p < k; ++p) {
      const auto code = static_cast<unsigned>((p + p / 16 + shift) % 16);
      set_code(problem, 0, k, j, p, code);
      want.push_back(kNf4[code]);
    }
  }
  return compare_bits("y", problem.shape(2), trial.run(problem).outputs[0], want, "with scale 1, against the codebook");
}

Outcome nf4_dequantize::batch_invariance(Trial& trial) { return independent_of_batch(trial); }
Outcome nf4_dequantize::scaling(Trial& trial) { return scales_with(trial, {1}, Strategy::gaussian); }
Outcome nf4_dequantize::padding(Trial& trial) { return padding_does_not_matter(trial, 0, trial.the_case().dims[1]); }

audit::Subject nf4_dequantize::audited() {
  return {.sums = {{.says = "y[0,0]",
                    .terms = audit::Terms::values,
                    .dims = {4, 128},
                    .count = 1,
                    .left = {1},
                    .result = {2},
                    .no_subnormals = "scales below 2^-120 count as 0",
                    .background = [](Problem& p) { std::ranges::fill(p.values[0], 255.0F); }}}};
}

}  // namespace assay::falsify
