// Error measures that projects compare with their limits.
#pragma once

#include <span>

namespace assay::falsify::policies {

/// ggml: sum (a - b)^2 / sum a^2, terms in float32, sums in double. NaN if both are zero.
inline double nmse(std::span<const float> a, std::span<const float> b) {
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += static_cast<double>((a[i] - b[i]) * (a[i] - b[i]));
    size += static_cast<double>(a[i] * a[i]);
  }
  return difference / size;
}

/// ggml: mean of |(a - b) / (a + b)|. NaN if any pair is 0 and 0.
inline double mean_absolute_asymmetry(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const float asymmetry = (a[i] - b[i]) / (a[i] + b[i]);
    sum += static_cast<double>(asymmetry < 0 ? -asymmetry : asymmetry);
  }
  return sum / static_cast<double>(a.size());
}

/// Returns the first element that is not within absolute + relative |want| of `want`; -1 if there is none. Equal
/// infinities agree, and NaN with NaN if `equal_nan`.
std::ptrdiff_t first_beyond(std::span<const float> got, std::span<const float> want, double relative, double absolute,
                            bool equal_nan);

}  // namespace assay::falsify::policies
