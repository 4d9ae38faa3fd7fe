// Properties shared by rope and its gradient.
#pragma once

#include "falsify/properties/shared/rows.hpp"

namespace assay::falsify {

/// Indices of the parameters and of the tensors of both contracts.
enum RopeParam { kTheta, kInterleaved, kFloat32Angle };
enum RopeTensor { kFrom, kPositions, kTo };

/// Gives most cases the positions of models: sequences one after another that count up from 0 or from a later place, as
/// batches, chunks of a prompt and decode steps do. Other cases keep the numbers drawn: any order, repeats, the ends.
void rope_positions(Problem& problem, Strategy strategy, Random& random);

/// Checks that row 0 at position 0 keeps its values, as numbers.
Outcome rope_identity(Trial& trial);
/// Checks that 2^a x gives 2^a y, bitwise.
Outcome rope_scaling(Trial& trial);
/// Compares one row rotated by a, then by b, with the same row rotated by a + b.
Outcome rope_composition(Trial& trial);

/// Returns the case's problem with at least one row, and with ones instead of values that are infinite or nearly so in
/// binary16.
Problem rope_problem(const Trial& trial);
/// Returns the first row of the case's problem alone, at exact angles and this position.
Problem rope_row_at(const Trial& trial, double position);

}  // namespace assay::falsify
