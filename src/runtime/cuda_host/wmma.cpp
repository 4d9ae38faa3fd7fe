#include "runtime/cuda_host/wmma.hpp"

#include <algorithm>
#include <bit>
#include <cfloat>
#include <cmath>

#include "runtime/cuda_host/model.hpp"

namespace assay::cuda_host {
namespace {

constexpr int kBlock = 4, kSide = 16;

float truncated(float x) { return std::bit_cast<float>(std::bit_cast<std::uint32_t>(x) & 0xffffe000U); }

/// d[j] + sum_q a[q] * b[q][j], everything truncated at the largest exponent. All numbers are finite. Double holds the
/// products and whatever follows exactly; powers of two are made from the bits of the largest, without a branch, so
/// that the loop is vectorized.
void add_block(float (&d)[kSide], const float* a, const float (*b)[kSide]) {
  constexpr std::uint64_t kExponent = 0x7ffULL << 52, kFraction24 = (1ULL << 29) - 1;
  for (int j = 0; j < kSide; ++j) {
    double terms[kBlock + 1] = {static_cast<double>(d[j])};
    for (int q = 0; q < kBlock; ++q) terms[q + 1] = static_cast<double>(a[q]) * static_cast<double>(b[q][j]);
    double largest = 0x1p-126;  // the last bit of a subnormal is as far as alignment goes
    for (double term : terms) largest = std::max(largest, std::fabs(term));
    const std::uint64_t exponent = std::bit_cast<std::uint64_t>(largest) & kExponent;
    const double scale = std::bit_cast<double>((2069ULL << 52) - exponent);  // to units of its 24th bit
    int total = 0;
    for (double term : terms) total += static_cast<int>(term * scale);
    const auto sum = std::bit_cast<std::uint64_t>(static_cast<double>(total)) & ~kFraction24;
    d[j] = static_cast<float>(std::bit_cast<double>(sum) * std::bit_cast<double>(exponent - (23ULL << 52)));
  }
}

/// The same where something is infinite or NaN: its class is all that matters.
void add_nonfinite(float (&d)[kSide], const float* a, const float (*b)[kSide]) {
  for (int j = 0; j < kSide; ++j)
    for (int q = 0; q < kBlock; ++q) d[j] = d[j] + a[q] * b[q][j];
}

bool finite(const float* numbers, int count) {
  bool all = true;
  for (int i = 0; i < count; ++i) all &= std::fabs(numbers[i]) <= FLT_MAX;
  return all;
}

template <int depth, bool truncate>
void multiply(void* const operands[warpSize], unsigned) {
  constexpr int kElements = kSide * depth / warpSize;
  float a[kSide][depth], b[depth][kSide], d[kSide][kSide];
  const auto lane = [&](int l) { return static_cast<const MmaOperand*>(operands[l]); };
  const auto held = [](float x) { return truncate ? truncated(x) : x; };
  for (int l = 0; l < warpSize; ++l) {
    for (int e = 0; e < kElements; ++e) a[(32 * e + l) / depth][(32 * e + l) % depth] = held(lane(l)->a[e]);
    for (int e = 0; e < kElements; ++e) b[(32 * e + l) / kSide][l % kSide] = held(lane(l)->b[e]);
    for (int e = 0; e < 8; ++e) d[(32 * e + l) / kSide][l % kSide] = lane(l)->c[e];
  }
  const bool inputs_finite = finite(a[0], kSide * depth) && finite(b[0], depth * kSide);
  for (int i = 0; i < kSide; ++i)
    for (int k = 0; k < depth; k += kBlock)  // the first block may overflow
      (inputs_finite && finite(d[i], kSide) ? add_block : add_nonfinite)(d[i], a[i] + k, b + k);
  for (int l = 0; l < warpSize; ++l)
    for (int e = 0; e < 8; ++e) lane(l)->d[e] = d[(32 * e + l) / kSide][l % kSide];
}

}  // namespace

void mma_tf32(MmaOperand operand, std::source_location site) {
  together(0xffffffffU, &multiply<8, true>, &operand, site);
}
void mma_16_bits(MmaOperand operand, std::source_location site) {
  together(0xffffffffU, &multiply<16, false>, &operand, site);
}

void check_fragment(const void* memory, unsigned leading_dimension, std::source_location site) {
  if (reinterpret_cast<std::uintptr_t>(memory) % 32 != 0 || leading_dimension % 4 != 0)
    fail("misaligned address", "a fragment needs 32-byte alignment and a leading dimension that is a multiple of 4",
         site);
}

float to_tf32(float x) {
  if (std::isnan(x)) return std::bit_cast<float>(0x7fffffffU);
  if (std::isinf(x)) return x;
  return truncated(std::bit_cast<float>(std::bit_cast<std::uint32_t>(x) + 0x1000U));
}

}  // namespace assay::cuda_host
