// Rotation of pairs on the CPU, for rope and its gradient.
#pragma once

#include "kernels/rotary.hpp"

namespace assay::cpu {

/// Rotates in SIMD; cosines and sines of a row are computed once for all of its heads.
void rotate_highway(const Rotary& call);

}  // namespace assay::cpu
