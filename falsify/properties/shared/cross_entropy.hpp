// Properties shared by cross_entropy and cross_entropy_with_gradient. Both contracts begin with logits, targets,
// weights, loss and total; the third output is logsumexp, and the fourth the last.
#pragma once

#include "falsify/engine/trial.hpp"

namespace assay::falsify {

/// Makes class weights nonnegative and, by strategy, logits at which a log-sum-exp is most sensitive.
void cross_entropy_inputs(Problem& problem, Strategy strategy, Random& random);

/// Checks that adding the same integer to all logits of a row changes no bit of loss and total.
Outcome cross_entropy_shift(Trial& trial);
/// Checks losses of targets far above all others, tied with some, and far below.
Outcome cross_entropy_one_hot_limit(Trial& trial);
/// Checks that permuting rows permutes losses, within the bounds.
Outcome cross_entropy_row_permutation(Trial& trial);
/// Checks that doubling every weight doubles the losses and their sum and leaves their mean. The last output grows by 2
/// to the power given for each reduction.
Outcome cross_entropy_weight_scaling(Trial& trial, int of_last_in_mean, int of_last_in_sum);

/// Makes row i's target class i, with a loss of 128 times that class's weight; total is their sum.
void losses_of_128(Problem& problem);

}  // namespace assay::falsify
