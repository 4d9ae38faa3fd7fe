#include "system/sha256.hpp"

#include <array>
#include <cstdint>

namespace assay {
namespace {

using Word = std::uint32_t;

constexpr std::array<Word, 64> kRounds = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

using State = std::array<Word, 8>;

// A sanitized program is hundreds of megabytes, all of which it hashes at its start (cli/falsify.cpp), which takes half
// a minute with every access checked. GCC does not inline checked functions into unchecked ones, so call no library
// function here.
#define ASSAY_UNCHECKED [[gnu::no_sanitize("address", "undefined", "thread")]]

ASSAY_UNCHECKED Word rotr(Word x, int n) { return x >> n | x << (32 - n); }

/// Section 6.2.2: one block of 64 bytes.
ASSAY_UNCHECKED void absorb(Word* state, const unsigned char* block, const Word* rounds) {
  Word w[64];
  for (std::size_t t = 0; t < 16; ++t)
    w[t] = Word{block[4 * t]} << 24 | Word{block[4 * t + 1]} << 16 | Word{block[4 * t + 2]} << 8 | block[4 * t + 3];
  for (std::size_t t = 16; t < 64; ++t) {
    const Word s0 = rotr(w[t - 15], 7) ^ rotr(w[t - 15], 18) ^ w[t - 15] >> 3;
    const Word s1 = rotr(w[t - 2], 17) ^ rotr(w[t - 2], 19) ^ w[t - 2] >> 10;
    w[t] = w[t - 16] + s0 + w[t - 7] + s1;
  }
  Word a = state[0], b = state[1], c = state[2], d = state[3], e = state[4], f = state[5], g = state[6], h = state[7];
#pragma GCC unroll 8  // one rotation of the eight variables: no moves
  for (std::size_t t = 0; t < 64; ++t) {
    const Word s1 = rotr(e, 6) ^ rotr(e, 11) ^ rotr(e, 25);
    const Word t1 = h + s1 + ((e & f) ^ (~e & g)) + rounds[t] + w[t];
    const Word s0 = rotr(a, 2) ^ rotr(a, 13) ^ rotr(a, 22);
    const Word t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
  }
  const Word added[8] = {a, b, c, d, e, f, g, h};
  for (std::size_t i = 0; i < 8; ++i) state[i] += added[i];
}

}  // namespace

std::string sha256(std::string_view text) {
  State state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
  const std::size_t whole = text.size() / 64 * 64;
  for (std::size_t at = 0; at < whole; at += 64) absorb(state.data(), bytes + at, kRounds.data());
  // Section 5.1.1: a one bit, zeros, and the length in bits.
  std::array<unsigned char, 128> tail{};
  const std::size_t rest = text.size() - whole;
  for (std::size_t i = 0; i < rest; ++i) tail[i] = bytes[whole + i];
  tail[rest] = 0x80;
  const std::size_t end = rest < 56 ? 64 : 128;
  const std::uint64_t bits = std::uint64_t{text.size()} * 8;
  for (std::size_t i = 0; i < 8; ++i) tail[end - 1 - i] = static_cast<unsigned char>(bits >> (8 * i));
  for (std::size_t at = 0; at < end; at += 64) absorb(state.data(), tail.data() + at, kRounds.data());
  std::string hex;
  for (const Word word : state)
    for (int shift = 28; shift >= 0; shift -= 4) hex += "0123456789abcdef"[word >> shift & 15];
  return hex;
}

}  // namespace assay
