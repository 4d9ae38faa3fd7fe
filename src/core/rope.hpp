// Frequencies of rotary position embeddings for kernels, computed on the host with more digits than a float, so that
// phases stay exact at any position.
#pragma once

#include <cstdint>
#include <vector>

#include "core/shape.hpp"

namespace assay {

/// A frequency f = theta^(-2i/d). For exact angles: f / (2 pi) in units of 2^-128 turns, rounded down, lowest word
/// first. For float32 angles: word[0] holds the bits of the float nearest to f.
struct RopeFrequency {
  std::uint32_t word[4];
};

/// Returns the frequencies of i = 0 .. d/2 - 1. Cached per thread for the last theta and d.
const std::vector<RopeFrequency>& rope_frequencies(double theta, Index d, bool float32_angle);

/// Returns the largest error of the angle position theta^(-2i/d) of a kernel that forms frequencies in float32
/// (Arithmetic::frequencies), against the exact angle or, with `float32_angle`, the float nearest to the product of
/// floats.
double rope_error(double position, double theta, Index i, Index d, bool float32_angle);

}  // namespace assay
