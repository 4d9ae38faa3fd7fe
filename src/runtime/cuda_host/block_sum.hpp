// One block of products as tensor cores add it.
#pragma once

#include <algorithm>
#include <bit>
#include <cfloat>
#include <cmath>
#include <cstdint>

// Products are compiled once per instruction set and selected at run time. (target_clones does not work: its resolvers
// run before the sanitizers are initialized.)
#define ASSAY_INLINE [[gnu::always_inline]] inline

namespace assay::cuda_host {

constexpr int kBlock = 4;  ///< terms of a block

/// Computes d[j] + sum_q a[q] * b[q][j], with all terms truncated at the largest exponent. A subnormal factor has the
/// exponent of `floor`, the smallest normal number. All numbers are finite. Double represents the products and all
/// further steps exactly. Powers of two are built from the bits of the largest term without a branch, so that the loop
/// is vectorized.
template <int columns>
ASSAY_INLINE void add_block(float (&d)[columns], const float* a, const float (*b)[columns], double floor) {
  constexpr std::uint64_t kExponent = 0x7ffULL << 52, kFraction24 = (1ULL << 29) - 1;
  for (int j = 0; j < columns; ++j) {
    double terms[kBlock + 1] = {static_cast<double>(d[j])};
    for (int q = 0; q < kBlock; ++q) terms[q + 1] = static_cast<double>(a[q]) * static_cast<double>(b[q][j]);
    double largest = 0x1p-126;  // alignment stops at the last bit of a subnormal
    for (double term : terms) largest = std::max(largest, std::fabs(term));
    for (int q = 0; q < kBlock; ++q) {
      const double at = std::max(std::fabs(static_cast<double>(a[q])), floor) *
                        std::max(std::fabs(static_cast<double>(b[q][j])), floor);
      largest = std::max(largest, terms[q + 1] != 0 ? at : 0);
    }
    const std::uint64_t exponent = std::bit_cast<std::uint64_t>(largest) & kExponent;
    const double scale = std::bit_cast<double>((2069ULL << 52) - exponent);  // scales to units of its 24th bit
    int total = 0;
    for (double term : terms) total += static_cast<int>(term * scale);
    const auto sum = std::bit_cast<std::uint64_t>(static_cast<double>(total)) & ~kFraction24;
    d[j] = static_cast<float>(std::bit_cast<double>(sum) * std::bit_cast<double>(exponent - (23ULL << 52)));
  }
}

ASSAY_INLINE bool finite(const float* numbers, int count) {
  bool all = true;
  for (int i = 0; i < count; ++i) all &= std::fabs(numbers[i]) <= FLT_MAX;
  return all;
}

}  // namespace assay::cuda_host
