// Frequencies of rotary position embeddings, as kernels use them: computed on the host to more digits than a float's, so
// that phases stay exact at any position.
#pragma once

#include <cstdint>
#include <vector>

#include "core/shape.hpp"

namespace assay {

/// A frequency f = theta^(-2i/d). For exact angles f / (2 pi) in units of 2^-128 turns, rounded down, lowest word first;
/// for float32 angles word[0] holds the bits of the float nearest to f.
struct RotaryFrequency {
  std::uint32_t word[4];
};

/// Those of i = 0 .. d/2 - 1. Kept per thread for the last theta and d.
const std::vector<RotaryFrequency>& rotary_frequencies(double theta, Index d, bool float32_angle);

/// Largest error of the angle position theta^(-2i/d) of a kernel that forms frequencies in float32 (Arithmetic::frequencies), against the
/// exact one or, with `float32_angle`, the float nearest to the product of floats.
double rotary_error(double position, double theta, Index i, Index d, bool float32_angle);

}  // namespace assay
