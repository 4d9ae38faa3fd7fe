// B of product.glsl for W [n, k] in NF4 codes: rows of W are the columns of the product (B_TRANSPOSED) or the terms of
// its sums. codes [n, 32 b] bytes in words, b_first and b_ld in words; absmax [n, b]. Weights past column k are 0.
#include "nf4.glsl"
#extension GL_EXT_control_flow_attributes : require

layout(set = 0, binding = 1) readonly buffer B { uint codes[]; };
layout(set = 0, binding = 3) readonly buffer Absmax { float absmax[]; };

shared float table[16];

/// Must be called by every invocation before the first weight: it contains a barrier.
void load_table() {
  if (gl_LocalInvocationIndex == 0)
    [[unroll]] for (uint i = 0; i < 16; ++i) table[i] = codebook[i];
  barrier();
}

float scale_at(uint j, uint p) {
  return nf4_scale(absmax[absmax_first + j * absmax_ld + p / BLOCK_SIZE]);
}

/// Returns the word of codes that holds element (j, p).
uint word_at(uint j, uint p) { return codes[b_first + j * b_ld + p / 8]; }

/// Returns entry `i` of a word's eight; the earlier of two codes is in the high bits.
float entry_of(uint word, uint i) {
  return table[(word >> (4 * (i ^ 1))) & 15];
}

float weight(uint j, uint p) {
  precise float w = entry_of(word_at(j, p), p % 8) * scale_at(j, p);
  return w;
}

/// Returns weights (j, p) to (j, p + 3), p a multiple of 4.
vec4 weight4(uint j, uint p, uint rows, uint columns) {
  if (j >= rows || p >= columns) return vec4(0);
  const uint word = word_at(j, p), first = p % 8;
  precise vec4 w = vec4(entry_of(word, first), entry_of(word, first + 1), entry_of(word, first + 2), entry_of(word, first + 3)) *
                   scale_at(j, p);
  if (p + 1 >= columns) w.y = 0;
  if (p + 2 >= columns) w.z = 0;
  if (p + 3 >= columns) w.w = 0;
  return w;
}
