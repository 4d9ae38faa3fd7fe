// The exact phase of a rotary angle, its cosine and its sine, shared by the kernels of rope and its gradient on every
// back end.
#pragma once

#include <bit>
#include <cmath>

#include "core/rope.hpp"
#include "core/view.hpp"

#if defined(__CUDACC__)
#define ASSAY_EVERYWHERE __host__ __device__
#else
#define ASSAY_EVERYWHERE
#endif

namespace assay {

/// A call of rope, or of its gradient if `inverse` is set.
struct RopeCall {
  Index rows, heads, d;
  double theta;
  bool interleaved, float32_angle;
  View<const std::int32_t> positions;
  StorageView from, to;
  bool inverse;
};

struct CosSin {
  float cos, sin;
};

/// Returns bits 64..127 of multiplier * fraction. If the fraction is in units of 2^-128 turns, the result is the phase
/// of multiplier * fraction in units of 2^-64 turns; whole turns overflow and vanish.
ASSAY_EVERYWHERE inline std::uint64_t phase_of(std::uint64_t multiplier, std::uint64_t upper, std::uint64_t lower) {
#if defined(__CUDA_ARCH__)
  return multiplier * upper + __umul64hi(multiplier, lower);
#else
  __extension__ using Wide = unsigned __int128;
  return multiplier * upper + static_cast<std::uint64_t>(static_cast<Wide>(multiplier) * lower >> 64);
#endif
}

/// Cosine and sine of r, |r| <= pi/4, plus `quarters` quarter turns, by polynomials with + - * alone.
/// Each errs by less than 4u of itself where r errs by at most 2.47u (contracts/numerics.yaml, octant).
/// Source: Moshier's Cephes library, sinf.c and cosf (single precision minimax coefficients).
ASSAY_EVERYWHERE inline CosSin octant_cos_sin(float r, unsigned quarters) {
  const float z = r * r;
  const float s = r + r * z * (-1.6666654611e-1f + z * (8.3321608736e-3f + z * -1.9515295891e-4f));
  const float c =
      1.0f - (0.5f * z - z * z * (4.166664568298827e-2f + z * (-1.388731625493765e-3f + z * 2.443315711809948e-5f)));
  switch (quarters & 3u) {
    case 1: return {-s, c};
    case 2: return {-c, -s};
    case 3: return {s, -c};
    default: return {c, s};
  }
}

/// Cosine and sine of a phase in units of 2^-64 turns. Quarter turns are removed first, so that the remainder converts
/// to float at full precision.
ASSAY_EVERYWHERE inline CosSin phase_cos_sin(std::uint64_t phase) {
  const std::uint64_t quarters = (phase + (std::uint64_t{1} << 61)) >> 62;
  const auto rest = static_cast<std::int64_t>(phase - (quarters << 62));
  return octant_cos_sin(static_cast<float>(rest) * 0x1.921fb6p-62f, static_cast<unsigned>(quarters));  // 2 pi 2^-64
}

/// Cosine and sine of a float in [0, 2^21].
ASSAY_EVERYWHERE inline CosSin float_cos_sin(float angle) {
  if (angle <= 0.785398185f) return octant_cos_sin(angle, 0);  // pi/4
  // A float from 1/2 on is a multiple of 2^-24; the constants are the bits of 2^-24 / (2 pi) turns in units of 2^-128.
  const auto units = static_cast<std::uint64_t>(angle * 16777216.0f);
  return phase_cos_sin(phase_of(units, 0x00000028be60db93u, 0x91054a7f09d5f47du));
}

/// Cosine and sine of pair i's angle at a position below 2^21. word[0..3] as in core/rope.hpp.
ASSAY_EVERYWHERE inline CosSin rope_cos_sin(const RopeFrequency& f, Index position, bool float32_angle) {
  if (!float32_angle)
    return phase_cos_sin(phase_of(static_cast<std::uint64_t>(position),
                                  static_cast<std::uint64_t>(f.word[3]) << 32 | f.word[2],
                                  static_cast<std::uint64_t>(f.word[1]) << 32 | f.word[0]));
#if defined(__CUDA_ARCH__)
  return float_cos_sin(static_cast<float>(position) * __uint_as_float(f.word[0]));
#else
  return float_cos_sin(static_cast<float>(position) * std::bit_cast<float>(f.word[0]));
#endif
}

/// Builds the call from RopeArgs or RopeBackwardArgs.
template <class Args>
RopeCall rope_call(const Args& args) {
  RopeCall r{args.rows,      args.heads, args.d, args.theta, args.interleaved != 0, args.float32_angle != 0,
             args.positions, {},         {},     false};
  if constexpr (requires { args.dx; }) r.from = args.dy, r.to = args.dx, r.inverse = true;
  else r.from = args.x, r.to = args.y;
  return r;
}

}  // namespace assay
