// Metamorphic properties shared by operations on rows: rmsnorm, softmax, rope, silu_mul and their backward passes. The
// first dim is the number of rows; a tensor whose first axis is this dim has a part for every row.
#pragma once

#include "falsify/engine/trial.hpp"

namespace assay::falsify {

/// Checks that rows [from, to) in a call of their own have the same bits, unless the kernel declares otherwise.
Outcome rows_are_independent(Trial& trial);

/// Checks that permuting the elements of the last axis, named `dim`, of every tensor that has it permutes the outputs
/// in the same way, within the bounds of both calls.
Outcome columns_permute(Trial& trial, std::string_view dim);

/// Compares two runs that must agree, element by element within twice the bounds `want`; `expected` and `got` are of
/// one output.
Outcome same_within(std::string_view tensor, const Shape& shape, std::vector<double> got, std::vector<double> expected,
                    const std::vector<Bounded>& want);

/// Scaling input `tensor` by 2^exponent scales output number o by 2^exponents[o] (Trial::scales); params are those of
/// the scaled call.
struct Scaling {
  int tensor;
  int exponent;
  std::vector<int> exponents;
};
Outcome scales_by_powers(Trial& trial, const Problem& plain, const Scaling& scaling, std::vector<double> scaled_params);

/// True if the tensor's values scaled by 2^exponent are representable in its storage.
bool scales_exactly(const Problem& problem, int tensor, int exponent);

}  // namespace assay::falsify
