// Properties of the cross-entropy (obligations of contracts/cross_entropy.yaml).
#include "cross_entropy_obligations.hpp"
#include "falsify/properties/shared/cross_entropy.hpp"

namespace assay::falsify {

void cross_entropy::make_inputs(Problem& problem, Strategy strategy, Random& random) {
  cross_entropy_inputs(problem, strategy, random);
}

Outcome cross_entropy::shift(Trial& trial) { return cross_entropy_shift(trial); }
Outcome cross_entropy::one_hot_limit(Trial& trial) { return cross_entropy_one_hot_limit(trial); }
Outcome cross_entropy::weight_scaling(Trial& trial) { return cross_entropy_weight_scaling(trial, 1, 0); }
Outcome cross_entropy::row_permutation(Trial& trial) { return cross_entropy_row_permutation(trial); }

audit::Subject cross_entropy::audited() {
  return {.sums = {{.says = "logsumexp[0] over classes",
                    .terms = audit::Terms::exponentials,
                    .dims = {4, 32},
                    .count = 32,
                    .left = {0},
                    .result = {5}},
                   {.says = "total over rows",
                    .terms = audit::Terms::values,
                    .dims = {32, 32},
                    .count = 32,
                    .left = {2},
                    .result = {4},
                    .scale = 128,
                    .background = &losses_of_128},
                   {.says = "normalizer over rows",
                    .terms = audit::Terms::values,
                    .dims = {32, 32},
                    .count = 32,
                    .left = {2},
                    .result = {6},
                    .background = [](Problem& p) { losses_of_128(p), p.params[0] = 1; }}}};
}

}  // namespace assay::falsify
