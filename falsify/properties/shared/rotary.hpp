// Properties shared by rope and its gradient.
#pragma once

#include "falsify/properties/shared/rows.hpp"

namespace assay::falsify {

/// Indices of the parameters of both contracts.
enum RopeParam { kTheta, kInterleaved, kFloat32Angle, kPosition };

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
