// Q4_K super-blocks in device code: words, from rows that start at multiples of 4 bytes.
#pragma once

#include <algorithm>

#include "core/q4_k.hpp"
#include "core/view.hpp"
#include "kernels/storage.hpp"
#include "runtime/cuda/launch.hpp"
#include "runtime/registry.hpp"
// After launch.hpp, which names the namespace.
#include "kernels/cuda/storage.cuh"

namespace assay::ASSAY_CUDA_NAMESPACE {

/// Rows of super-blocks: row i starts at data + i * ld, a multiple of 4 bytes.
struct Q4kRows {
  const std::uint8_t* data;
  Index ld;
};

inline Q4kRows q4k_rows(const View<const std::uint8_t>& blocks) { return {blocks.data(), row_stride(blocks)}; }

/// Refuses misaligned data: device words are aligned, and the contract's alignment of rows applies to the first row
/// too.
inline std::optional<std::string> refuse_bytes(const std::uint8_t* data) {
  if (reinterpret_cast<std::uintptr_t>(data) % 4 == 0) return std::nullopt;
  return "blocks start at no multiple of 4 bytes";
}

/// Returns the first byte of super-block n of row i.
__device__ inline const std::uint8_t* q4k_block(const Q4kRows& rows, Index i, Index n) {
  return rows.data + i * rows.ld + n * q4_k::kBytes;
}

/// d and dmin, and the packed scales.
struct Q4kHeader {
  unsigned halves, scales, minima, rest;
};

/// `aligned`: the super-block starts at a multiple of 16 bytes.
__device__ inline Q4kHeader q4k_header(const std::uint8_t* block, bool aligned) {
  if (aligned) {
    const uint4 v = *reinterpret_cast<const uint4*>(block);
    return {v.x, v.y, v.z, v.w};
  }
  const auto* const words = reinterpret_cast<const unsigned*>(block);
  return {words[0], words[1], words[2], words[3]};
}

__device__ inline float q4k_half(unsigned bits) { return load(Half{static_cast<std::uint16_t>(bits)}); }

/// value = step q - minimum: both exact.
struct Q4kLine {
  float step, minimum;
};

__device__ inline Q4kLine q4k_line(const Q4kHeader& h, int b) {
  unsigned scale, minimum;
  if (b < 4) {
    scale = h.scales >> 8 * b & 63U;
    minimum = h.minima >> 8 * b & 63U;
  } else {
    const int at = 8 * (b - 4);
    scale = (h.rest >> at & 15U) | (h.scales >> (at + 6) & 3U) << 4;
    minimum = (h.rest >> (at + 4) & 15U) | (h.minima >> (at + 6) & 3U) << 4;
  }
  return {q4k_half(h.halves & 0xffffU) * static_cast<float>(scale),
          q4k_half(h.halves >> 16) * static_cast<float>(minimum)};
}

/// Returns the value with one rounding, fused or not.
__device__ inline float q4k_value(const Q4kLine& line, unsigned code) {
  return __fmaf_rn(line.step, static_cast<float>(code), -line.minimum);
}

/// Returns byte t of four as a float: places the byte in the lowest bits of 2^23 and subtracts 2^23. This avoids
/// conversions, which devices execute at a quarter of the rate.
__device__ inline float q4k_number(unsigned bytes, int t) {
  return __uint_as_float(__byte_perm(bytes, 0x4b000000U, 0x7440U + static_cast<unsigned>(t))) - 8388608.0f;
}

/// Returns the lines of the two sub-blocks whose codes share bytes, 2 group and 2 group + 1: scales two at a time,
/// without conversions.
__device__ inline void q4k_lines(const Q4kHeader& h, int group, Q4kLine (&lines)[2]) {
  const int at = 16 * (group & 1);
  const unsigned first = h.scales >> at, second = h.minima >> at, rest = h.rest >> at;
  unsigned scales = first & 0x3f3fU, minima = second & 0x3f3fU;
  if (group >= 2) {
    scales = (rest & 0x0f0fU) | (first >> 2 & 0x3030U);
    minima = (rest >> 4 & 0x0f0fU) | (second >> 2 & 0x3030U);
  }
  const float d = q4k_half(h.halves & 0xffffU), dmin = q4k_half(h.halves >> 16);
#pragma unroll
  for (int n = 0; n < 2; ++n) lines[n] = {d * q4k_number(scales, n), dmin * q4k_number(minima, n)};
}

/// Returns true if every super-block starts at a multiple of 16 bytes.
inline bool q4k_aligned(const Q4kRows& rows) {
  return reinterpret_cast<std::uintptr_t>(rows.data) % 16 == 0 && rows.ld % 16 == 0;
}

}  // namespace assay::ASSAY_CUDA_NAMESPACE
