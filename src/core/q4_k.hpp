// The Q4_K format of ggml and GGUF: super-blocks of 256 values in 144 bytes, 4.5 bits per value.
//
//     byte 0      d, binary16, little endian          step of the scales
//          2      dmin, binary16, little endian       step of the minima
//          4      12 bytes: 6-bit scale sc[b] and minimum m[b] of each sub-block b of 32 values. Bytes 0..3 hold sc[0..3]
//                 in their low six bits, bytes 4..7 m[0..3]; bytes 8..11 the low four bits of sc[4..7] (low nibble) and
//                 m[4..7] (high nibble), whose upper two bits are the top bits of bytes 0..3 and 4..7
//          16     128 bytes: groups of 64 values in 32 bytes, low nibbles the first 32, high nibbles the second
//
// value[i] = d sc q[i] - dmin m, b = i / 32. d sc q has 11 + 6 + 4 bits and dmin m has 17, and both are multiples of
// 2^-24: they are floats, and the value is their difference rounded once, in any evaluation.
#pragma once

#include <cstdint>

#include "core/half.hpp"
#include "core/shape.hpp"

namespace assay::q4_k {

inline constexpr Index kValues = 256, kBytes = 144, kSubBlock = 32, kSubBlocks = 8;
inline constexpr Index kPacked = 4, kCodes = 16;  ///< first byte of the packed scales, of the codes
inline constexpr unsigned kLargestScale = 63, kLargestCode = 15;

/// Returns the number of super-blocks of a row of k values; the last may be padded.
constexpr Index blocks_of(Index k) { return (k + kValues - 1) / kValues; }
constexpr Index row_bytes(Index k) { return blocks_of(k) * kBytes; }

struct Scale {
  unsigned scale, minimum;  ///< 6 bits each
};

/// Returns the scale of sub-block b, from the 12 packed bytes.
constexpr Scale unpack(const std::uint8_t* packed, Index b) {
  const auto byte = [packed](Index at) { return unsigned{packed[at]}; };
  if (b < 4) return {byte(b) & 63U, byte(b + 4) & 63U};
  return {(byte(b + 4) & 15U) | byte(b - 4) >> 6U << 4U, byte(b + 4) >> 4U | byte(b) >> 6U << 4U};
}

/// Inverse of unpack(). Packs every sub-block of a super-block, in any order, into bytes that were 0.
constexpr void pack(std::uint8_t* packed, Index b, Scale s) {
  const auto put = [packed](Index at, unsigned bits) { packed[at] = static_cast<std::uint8_t>(packed[at] | bits); };
  if (b < 4) {
    put(b, s.scale);
    put(b + 4, s.minimum);
    return;
  }
  put(b + 4, (s.scale & 15U) | (s.minimum & 15U) << 4U);
  put(b - 4, s.scale >> 4U << 6U);
  put(b, s.minimum >> 4U << 6U);
}

constexpr Half half_at(const std::uint8_t* bytes) {
  return {static_cast<std::uint16_t>(bytes[0] | unsigned{bytes[1]} << 8U)};
}

/// value = step q - minimum.
struct Line {
  float step, minimum;
};

/// Returns step and minimum of sub-block b; both are exact.
constexpr Line line_of(const std::uint8_t* block, Index b) {
  const Scale s = unpack(block + kPacked, b);
  return {widen(half_at(block)) * static_cast<float>(s.scale),
          widen(half_at(block + 2)) * static_cast<float>(s.minimum)};
}

/// Returns the 4-bit code of value i.
constexpr unsigned code_at(const std::uint8_t* block, Index i) {
  return unsigned{block[kCodes + i / 64 * 32 + i % 32]} >> (i % 64 / 32 * 4) & 15U;
}

constexpr float value_at(const std::uint8_t* block, Index i) {
  const Line line = line_of(block, i / kSubBlock);
  return line.step * static_cast<float>(code_at(block, i)) - line.minimum;
}

// Encoding (contracts/q4_k_quantize.yaml). A comparison of exact floats pins every choice, so a quotient only needs to
// be close: the comparison corrects it.

/// Returns the smallest half h >= 0 with factor h >= reach, or infinity; factor h is exact, reach >= 0.
constexpr Half smallest_half(float factor, float reach) {
  Half h = to_half(reach / factor);  // correct, or one below
  if (factor * widen(h) < reach) ++h.bits;
  return h;
}

/// Returns the smallest s with s step >= reach; 63 satisfies this.
constexpr unsigned smallest_code(float step, float reach) {
  if (!(reach > 0)) return 0;
  const auto near = static_cast<unsigned>(reach / step);
  const unsigned s = near < kLargestScale ? near : kLargestScale;
  return s < kLargestScale && static_cast<float>(s) * step < reach ? s + 1 : s;
}

/// Returns the code q whose q step is nearest to v >= 0, the smaller on a tie: the number of j in 1..15 with (2j - 1)
/// step < 2v.
constexpr unsigned nearest_code(float step, float v) {
  if (!(step > 0)) return 0;
  const float near = v / step + 0.5F;
  const unsigned q = near < kLargestCode ? static_cast<unsigned>(near) : kLargestCode;
  if (q > 0 && static_cast<float>(2 * q - 1) * step >= 2 * v) return q - 1;
  return q < kLargestCode && static_cast<float>(2 * q + 1) * step < 2 * v ? q + 1 : q;
}

/// d of a super-block whose values are not finite or out of range: all its other bytes are 0, and its values are NaN.
inline constexpr Half kUndefined{0x7e00};
inline constexpr float kScaleReach = 63, kValueReach = 15 * 63;  ///< largest factors of d and dmin

}  // namespace assay::q4_k
