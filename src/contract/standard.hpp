// Conditions and obligations that follow from a contract's dims and tensors, so that no contract repeats them.
#pragma once

#include "contract/model.hpp"

namespace assay::contract {

/// Adds, each with the lowest number that the contract leaves free:
/// - preconditions: limits and multiples of dims, shapes, layouts, overlaps, addresses, ranges of integers;
/// - obligations: frame, differential, nonfinite, determinism where it is bitwise, postconditions where there are any.
/// A condition or an obligation that the contract states itself is not added. What a built-in obligation leaves out
/// (`id`, `claim`, `if_fails`) is filled in. Afterwards clauses and obligations stand in the order of their numbers;
/// preconditions that name no tensor come first, so that no product of dims in a later one overflows.
void add_standard(model::Contract& contract);

}  // namespace assay::contract
