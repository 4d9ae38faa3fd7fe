// Properties shared by rope and its gradient.
#pragma once

#include "falsify/properties/shared/rows.hpp"

namespace assay::falsify {

/// Indices of the parameters of both contracts.
enum RotaryParam { kTheta, kInterleaved, kFloat32Angle, kPosition };

/// Row 0 at position 0 is what it was, as numbers.
Outcome rotary_identity(Trial& trial);
/// 2^a x gives 2^a y, bitwise.
Outcome rotary_scaling(Trial& trial);
/// One row rotated by a, then by b, against the same row rotated by a + b.
Outcome rotary_composition(Trial& trial);

/// The case's problem with a row at least, and ones where binary16 holds infinities, or nearly.
Problem rotary_problem(const Trial& trial);
/// The first row of the case's problem alone, at exact angles and this position.
Problem rotary_row_at(const Trial& trial, double position);

}  // namespace assay::falsify
