// Inputs shared by bce_with_logits and its gradient.
#pragma once

#include "falsify/engine/inputs.hpp"

namespace assay::falsify {

/// Makes targets 0, 1 or between, and nonnegative weights; for the strategy `directed` logits near zero, far below and
/// above it, where exp underflows and where it would overflow, and weights 1. Tensors in the order logits, targets,
/// pos_weight.
void direct_labels(Problem& problem, Strategy strategy, Random& random);

/// The problem with weights 1, and the same with negated logits and targets 1 - t (exact: quarters).
struct Mirrored {
  Problem plain, mirrored;
};
Mirrored mirrored_labels(Problem problem, Random& random);

}  // namespace assay::falsify
