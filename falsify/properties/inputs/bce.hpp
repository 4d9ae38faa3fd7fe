// Inputs that bce_with_logits and its gradient share.
#pragma once

#include "falsify/engine/inputs.hpp"

namespace assay::falsify {

/// Targets 0, 1 or between, weights that are not negative; for the strategy `directed` logits near zero, far below and
/// above it, where exp underflows and where it would overflow, and weights 1. Tensors in the order logits, targets,
/// pos_weight.
void direct_labels(Problem& problem, Strategy strategy, Random& random);

/// With weights 1: the problem, and the one with negated logits and targets 1 - t (exact: quarters).
struct Mirrored {
  Problem plain, mirrored;
};
Mirrored mirrored_labels(Problem problem, Random& random);

}  // namespace assay::falsify
