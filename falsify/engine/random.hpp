// Reproducible random numbers: the same seed gives the same values on every machine and compiler. No expression draws
// in two of its operands or arguments, since their order of evaluation is unspecified.
#pragma once

#include <cmath>
#include <cstdint>
#include <string_view>

namespace assay::falsify {

/// One step of splitmix64 (Steele, Lea & Flood, OOPSLA 2014): a bijective scrambling of 64 bits.
constexpr std::uint64_t scramble(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// Derives a separate seed for a named purpose, so that streams do not overlap.
constexpr std::uint64_t derive(std::uint64_t seed, std::string_view purpose) {
  std::uint64_t hash = scramble(seed);
  for (char c : purpose) hash = scramble(hash ^ static_cast<unsigned char>(c));
  return hash;
}

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t bits() { return scramble(state_ += 0x9e3779b97f4a7c15u); }
  /// Uniform in [0, n); n > 0. (The modulo's bias is below n / 2^64.)
  std::uint64_t below(std::uint64_t n) { return bits() % n; }
  /// Uniform integer in [low, high].
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(below(static_cast<std::uint64_t>(high - low) + 1));
  }
  /// Uniform in [0, 1).
  double uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }
  bool chance(double p) { return uniform() < p; }
  /// Approximately N(0, 1) and exactly symmetric: the sum of twelve 16-bit uniforms, less its mean, with
  /// further low bits so that a float of it uses its whole significand. Integer arithmetic and exact
  /// operations only, so every platform draws the same value.
  double gaussian() {
    std::int64_t sum = 0;
    for (int draw = 0; draw < 3; ++draw) {
      const std::uint64_t b = bits();
      sum += static_cast<std::int64_t>((b & 0xffff) + ((b >> 16) & 0xffff) + ((b >> 32) & 0xffff) + (b >> 48));
    }
    return static_cast<double>(2 * sum - 12 * 65535) / 131072.0 * (1 + uniform() / 1024);
  }
  double sign() { return bits() & 1 ? 1.0 : -1.0; }
  /// Returns x or -x.
  double either_sign(double x) { return x * sign(); }
  /// Draws from [2^low, 2^(high + 1)): a uniform exponent and a uniform significand.
  double by_magnitude(int low, int high) {
    const auto exponent = static_cast<int>(between(low, high));
    return std::ldexp(1 + uniform(), exponent);
  }

 private:
  std::uint64_t state_;
};

/// Draws the last multiple of 16, 32, ... or 512 up to `most`: a tile edge.
inline std::int64_t tile_edge(std::int64_t most, Random& random) {
  const int widest = most >= 512 ? 9 : most >= 256 ? 8 : 7;
  const auto tile = std::int64_t{1} << random.between(4, widest);
  return most / tile * tile;
}

}  // namespace assay::falsify
