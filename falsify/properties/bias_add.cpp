// Properties of y = x + bias (obligations of contracts/bias_add.yaml).
#include "bias_add_obligations.hpp"

#include "falsify/properties/shared/elementwise.hpp"

namespace assay::falsify {

Outcome bias_add::scaling(Trial& trial) { return scales_with(trial, {0, 1}); }
Outcome bias_add::batch_invariance(Trial& trial) { return independent_of_batch(trial); }

audit::Subject bias_add::audited() {
  return {.sums = {{.says = "y[0,0]",
                    .terms = audit::Terms::values,
                    .dims = {4, 64},
                    .count = 2,
                    .left = {0},
                    .second = {1},
                    .result = {2}}}};
}

}  // namespace assay::falsify
