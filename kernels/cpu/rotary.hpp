// Rotation of pairs on the CPU, for rope and its gradient.
#pragma once

#include "kernels/rotary.hpp"

namespace assay::cpu {

/// One pair after another, cosine and sine of the exact angle by the C library in double.
void rotate_naive(const Rotary& call);
/// In SIMD: the cosines and sines of a row once, for all of its heads.
void rotate_highway(const Rotary& call);

}  // namespace assay::cpu
