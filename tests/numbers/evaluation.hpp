// Correct evaluations of a dot product in float32, and in the reduced arithmetics that kernels may declare.
#pragma once

#include <cblas.h>
#include <pmmintrin.h>
#include <xmmintrin.h>

#include <algorithm>
#include <bit>
#include <cfenv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "core/arithmetic.hpp"
#include "core/shape.hpp"

namespace assay::numbers {

using Dot = float (*)(const float* x, const float* y, Index n);

struct Evaluation {
  std::string_view name;
  Dot dot;
};

inline float sequential(const float* x, const float* y, Index n) {
  float sum = 0;
  for (Index p = 0; p < n; ++p) sum += x[p] * y[p];
  return sum;
}
inline float backwards(const float* x, const float* y, Index n) {
  float sum = 0;
  for (Index p = n; p-- > 0;) sum += x[p] * y[p];
  return sum;
}
inline float fused(const float* x, const float* y, Index n) {
  float sum = 0;
  for (Index p = 0; p < n; ++p) sum = std::fma(x[p], y[p], sum);
  return sum;
}
inline float pairwise(const float* x, const float* y, Index n) {
  if (n <= 0) return 0;
  if (n == 1) return x[0] * y[0];
  return pairwise(x, y, n / 2) + pairwise(x + n / 2, y + n / 2, n - n / 2);
}
/// Sums in sixteen lanes, as a vector unit does, then adds the lanes from first to last.
template <bool fuse>
float lanes(const float* x, const float* y, Index n) {
  float lane[16] = {};
  for (Index p = 0; p < n; ++p) {
    float& sum = lane[p % 16];
    sum = fuse ? std::fma(x[p], y[p], sum) : sum + x[p] * y[p];
  }
  float sum = 0;
  for (float part : lane) sum += part;
  return sum;
}
/// Sums tiles of 32 in K separately, then adds each to the total.
inline float blocked(const float* x, const float* y, Index n) {
  float sum = 0;
  for (Index p = 0; p < n; p += 32) sum += sequential(x + p, y + p, std::min<Index>(32, n - p));
  return sum;
}
inline float wide(const float* x, const float* y, Index n) {
  double sum = 0;
  for (Index p = 0; p < n; ++p) sum += static_cast<double>(x[p]) * y[p];
  return static_cast<float>(sum);
}
inline float openblas(const float* x, const float* y, Index n) { return cblas_sdot(static_cast<int>(n), x, 1, y, 1); }

inline constexpr Evaluation kEvaluations[] = {
    {"sequential", sequential}, {"backwards", backwards},       {"fused", fused},
    {"pairwise", pairwise},     {"16 lanes", lanes<false>},     {"16 fused lanes", lanes<true>},
    {"blocked", blocked},       {"double, rounded once", wide}, {"OpenBLAS sdot", openblas},
};

// ---- reduced arithmetic -----------------------------------------------------------------------------------

/// Rounds x to `bits` significant bits (24 or fewer), to nearest even or toward zero.
inline float round_bits(float x, int bits, Rounding rounding) {
  if (!std::isfinite(x)) return x;
  auto word = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t drop = static_cast<std::uint32_t>(24 - bits), mask = (1u << drop) - 1;
  if (rounding == Rounding::nearest && drop > 0) word += (mask >> 1) + (word >> drop & 1);
  return std::bit_cast<float>(word & ~mask);
}

template <int bits, Rounding rounding>
float narrow_inputs(const float* x, const float* y, Index n) {
  float sum = 0;
  for (Index p = 0; p < n; ++p) sum += round_bits(x[p], bits, rounding) * round_bits(y[p], bits, rounding);
  return sum;
}
template <int bits>
float narrow_accumulator(const float* x, const float* y, Index n) {
  float sum = 0;
  for (Index p = 0; p < n; ++p) sum = round_bits(sum + x[p] * y[p], bits, Rounding::nearest);
  return sum;
}
/// Uses the processor's own rounding toward zero.
inline float toward_zero(const float* x, const float* y, Index n) {
  const int before = std::fegetround();
  std::fesetround(FE_TOWARDZERO);
  volatile float sum = 0;
  for (Index p = 0; p < n; ++p) sum = sum + x[p] * y[p];
  std::fesetround(before);
  return sum;
}
/// Uses the processor's own flushing of subnormal operands and results.
inline float flushing(const float* x, const float* y, Index n) {
  const unsigned before = _mm_getcsr();
  _MM_SET_FLUSH_ZERO_MODE(_MM_FLUSH_ZERO_ON);
  _MM_SET_DENORMALS_ZERO_MODE(_MM_DENORMALS_ZERO_ON);
  volatile float sum = 0;
  for (Index p = 0; p < n; ++p) sum = sum + x[p] * y[p];
  _mm_setcsr(before);
  return sum;
}
/// A tensor core: aligns b products and the accumulator to the largest exponent, truncates them to 24 bits, and sums.
template <int b>
float block_fused(const float* x, const float* y, Index n) {
  float sum = 0;
  for (Index first = 0; first < n; first += b) {
    double terms[b + 1] = {sum}, largest = std::fabs(sum);
    for (Index p = first; p < std::min<Index>(first + b, n); ++p) {
      terms[p - first + 1] = static_cast<double>(x[p]) * y[p];
      largest = std::max(largest, std::fabs(terms[p - first + 1]));
    }
    if (largest == 0) continue;
    if (!(largest < 0x1p128)) return std::numeric_limits<float>::infinity();  // a term overflows
    const int last_bit = std::max(std::ilogb(largest) - 23, -149);
    double total = 0;
    for (double term : terms) total += std::trunc(std::ldexp(term, -last_bit));
    const int excess = std::max(total == 0 ? 0 : std::ilogb(total) - 23, 0);
    sum = static_cast<float>(std::ldexp(std::trunc(std::ldexp(total, -excess)), last_bit + excess));
  }
  return sum;
}

/// Three products of TF32 for each float32 product: upper and lower 11 bits, truncated; the product of the lower parts
/// is omitted.
inline float three_products(const float* x, const float* y, Index n) {
  const auto upper = [](float v) { return round_bits(v, 11, Rounding::toward_zero); };
  std::vector<float> a, b;
  for (Index p = 0; p < n; ++p) {
    const float x_lower = upper(x[p] - upper(x[p])), y_lower = upper(y[p] - upper(y[p]));
    a.insert(a.end(), {x_lower, upper(x[p]), upper(x[p])});
    b.insert(b.end(), {upper(y[p]), y_lower, upper(y[p])});
  }
  return block_fused<4>(a.data(), b.data(), 3 * n);
}

struct Reduced {
  std::string_view name;
  Arithmetic arithmetic;
  Dot dot;
};

inline constexpr Reduced kReduced[] = {
    {"tf32 inputs to nearest", {.inputs = Format::tf32}, narrow_inputs<11, Rounding::nearest>},
    {"tf32 inputs truncated",
     {.inputs = Format::tf32, .input_rounding = Rounding::toward_zero},
     narrow_inputs<11, Rounding::toward_zero>},
    {"bf16 inputs", {.inputs = Format::bf16}, narrow_inputs<8, Rounding::nearest>},
    {"bf16 accumulator", {.accumulator = Format::bf16}, narrow_accumulator<8>},
    {"toward zero", {.accumulation = Rounding::toward_zero}, toward_zero},
    {"blocks of 4", {.accumulation = Rounding::toward_zero, .block = 4}, block_fused<4>},
    {"blocks of 8", {.accumulation = Rounding::toward_zero, .block = 8}, block_fused<8>},
    {"three products of TF32",
     {.inputs = Format::tf32x3, .accumulation = Rounding::toward_zero, .block = 4},
     three_products},
    {"subnormals flushed", {.flushes_subnormals = true}, flushing},
};

}  // namespace assay::numbers
