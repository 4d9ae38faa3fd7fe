// Properties of sums of columns (obligations of contracts/column_sum.yaml).
#include "column_sum_obligations.hpp"

#include "falsify/properties/shared/elementwise.hpp"

namespace assay::falsify {

void column_sum::make_inputs(Problem& problem, Strategy strategy, Random&) {
  if (strategy == Strategy::distinct_index) keep_sums_exact(problem.values[0], problem.dims[0]);
}

Outcome column_sum::scaling(Trial& trial) { return scales_with(trial, {0}); }

Outcome column_sum::row_additivity(Trial& trial) { return rows_add_up(trial, 0); }

audit::Subject column_sum::audited() {
  return {.sums = {{.says = "y[0] over m",
                    .terms = audit::Terms::values,
                    .dims = {64, 16},
                    .count = 64,
                    .left = {0, 0, 16},
                    .result = {1}}}};
}

}  // namespace assay::falsify
