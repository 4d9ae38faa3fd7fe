// Metamorphic properties shared by operations on rows: rmsnorm, softmax, rope, silu_mul and their backward passes. The
// first dim is the number of rows; a tensor whose first axis it is has a part for every row.
#pragma once

#include "falsify/engine/trial.hpp"

namespace assay::falsify {

/// Rows [from, to) in a call of their own have the same bits, unless the kernel declares otherwise. `position` is the index of a parameter that counts rows
/// from the first one on, or -1.
Outcome rows_stand_alone(Trial& trial, int position = -1);

/// Permuting the elements of the last axis, named `dim`, of every tensor that has it permutes them in the outputs, within
/// the bounds of both calls.
Outcome columns_permute(Trial& trial, std::string_view dim);

/// Two runs that compute the same, element by element within twice the bounds `want`; `expected` and `got` are of one output.
Outcome same_within(std::string_view tensor, const Shape& shape, std::vector<double> got, std::vector<double> expected,
                    const std::vector<Bounded>& want);

/// Scaling input `tensor` by 2^exponent scales output number o by 2^exponents[o] (Trial::scales); params are those of the scaled call.
struct Scaling {
  int tensor;
  int exponent;
  std::vector<int> exponents;
};
Outcome scales(Trial& trial, const Problem& plain, const Scaling& scaling, std::vector<double> scaled_params);

/// Inputs `tensors` scaled by 2^exponent are values that their storage holds.
bool scales_exactly(const Problem& problem, int tensor, int exponent);

}  // namespace assay::falsify
