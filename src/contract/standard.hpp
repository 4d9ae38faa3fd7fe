// Conditions and obligations that follow from a contract's dims and tensors, so that contracts need not repeat them.
#pragma once

#include "contract/model.hpp"

namespace assay::contract {

/// Adds, each with the lowest number that the contract does not use:
/// - preconditions: limits and multiples of dims, shapes, layouts, overlaps, addresses, ranges of integers;
/// - obligations: frame, differential, nonfinite, determinism if it is bitwise, postconditions if there are any.
/// Skips conditions and obligations that the contract states itself, and fills in missing fields of built-in
/// obligations (`id`, `claim`, `if_fails`). Afterwards clauses and obligations are in the order of their numbers.
/// Preconditions that name no tensor come first, so that no product of dims in a later one overflows.
void add_standard(model::Contract& contract);

}  // namespace assay::contract
