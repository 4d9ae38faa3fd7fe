// Shared by the properties of adapters: scales without rounding, exact integers, and the properties of lora_merge and
// lora_unmerge.
#pragma once

#include "falsify/properties/shared/matrices.hpp"

namespace assay::falsify {

/// Makes alpha / r a power of two, 2^least to 2, and returns it.
float whole_scale(Problem& problem, Index r, int least, Random& random);

/// Returns the dims of the case with two of them unchanged and the others at most 8: products with large results then
/// cost no more than their outputs.
std::vector<Index> two_large(const Trial& trial, Index first, Index second);

/// Returns the bits of odd integers of which `terms`, times -1, 0 or 1, add exactly in every order: 12, or fewer for
/// more than 4096 terms or if the kernel's inputs have fewer.
int bits_for(const Trial& trial, Index terms);
/// The same for the integers of a tensor, which its format must hold.
int bits_for(const Trial& trial, Index terms, DType stored);
/// Fill with odd integers of `bits` bits; with -1, 0 or 1; with a single -1 or 1 in each row.
void fill_wide(std::vector<float>& values, int bits, Random& random);
void fill_signs(std::vector<float>& values, Random& random);
Matrix one_in_each_row(Index rows, Index columns, Random& random);
/// Draws -1 or 1 at up to `few` places of each row, and 0 elsewhere.
Matrix few_in_each_row(Index rows, Index columns, int few, Random& random);
/// Fills with integers below `limit` in magnitude, at the places that are not 0 if `keep_zeros`.
void fill_below(Matrix& m, int limit, bool keep_zeros, Random& random);
/// Returns the largest power of two up to which a tensor of this format holds every integer.
int whole_limit(DType stored);

/// Compares `got` with `want` element by element, within the bounds of both sides' oracles.
Outcome within(std::string_view tensor, const Shape& shape, const std::vector<float>& got,
               const std::vector<float>& want, std::vector<double> bound);

/// `sign` is 1 for lora_merge, -1 for lora_unmerge: result = first + sign alpha / r B · A.
Outcome adapter_exact(Trial& trial);
Outcome adapter_row_slices(Trial& trial);
Outcome adapter_scaling(Trial& trial);
Outcome adapter_zero_b(Trial& trial);
Outcome adapter_round_trip(Trial& trial);
Outcome adapter_rank_doubled(Trial& trial);
Outcome adapter_ranks_add(Trial& trial);
Outcome adapter_transposition(Trial& trial);
Outcome adapter_large(Trial& trial, float sign);

}  // namespace assay::falsify
