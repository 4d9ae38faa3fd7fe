// What properties of adapters share: scales without a rounding, exact integers, and the properties of lora_merge and
// lora_unmerge.
#pragma once

#include "falsify/properties/shared/matrices.hpp"

namespace assay::falsify {

/// Makes alpha / r a power of two, 2^least to 2, and returns it.
float whole_scale(Problem& problem, Index r, int least, Random& random);

/// The dims of the case with two of them as they are and the others at most 8: products whose results are large cost no
/// more than their outputs.
std::vector<Index> two_large(const Trial& trial, Index first, Index second);

/// Bits of odd integers of which `terms`, times -1, 0 or 1, add exactly in every order: 12, or fewer for more than
/// 4096, or where the kernel's inputs have fewer.
int bits_for(const Trial& trial, Index terms);
/// Odd integers of `bits` bits; -1, 0 or 1; a single -1 or 1 in each row, or column.
void fill_wide(std::vector<float>& values, int bits, Random& random);
void fill_signs(std::vector<float>& values, Random& random);
Matrix one_in_each_row(Index rows, Index columns, Random& random);

/// The bounds of both sides' own oracles: got within `bound` of want, element by element.
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
