// Q4_K super-blocks in shaders: 36 words. The including shader binds `uint blocks[]`.

#include "half.glsl"

// Returns (x, y) of value = x q - y for sub-block b of the super-block whose first word is at `at`. Both are exact.
vec2 line_of(uint at, uint b) {
  const uint halves = blocks[at], shift = 8 * (b & 3u);
  uint scale, minimum;
  if (b < 4) {
    scale = blocks[at + 1] >> shift & 63u;
    minimum = blocks[at + 2] >> shift & 63u;
  } else {
    const uint rest = blocks[at + 3] >> shift;
    scale = (rest & 15u) | (blocks[at + 1] >> (shift + 6) & 3u) << 4;
    minimum = (rest >> 4 & 15u) | (blocks[at + 2] >> (shift + 6) & 3u) << 4;
  }
  return vec2(half_value(halves & 0xffffu) * float(scale), half_value(halves >> 16) * float(minimum));
}

// Returns four values of one sub-block: the nibbles at `shift` (0 or 4) of a word of codes.
vec4 values_of(vec2 line, uint word, uint shift) {
  const uint codes = word >> shift & 0x0f0f0f0fu;
  const vec4 q = vec4(codes & 255u, codes >> 8 & 255u, codes >> 16 & 255u, codes >> 24);
  return line.x * q - line.y;
}
