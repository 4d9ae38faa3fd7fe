// B of product.glsl for W [n, k] in Q4_K super-blocks, whose rows are the columns of the product. blocks [n, 144
// ceil(k / 256)] bytes in words, b_first and b_ld in words. Weights past column k are 0.
layout(set = 0, binding = 1) readonly buffer B { uint blocks[]; };
#include "q4_k.glsl"

void load_table() {}

// Returns weights (j, p) to (j, p + 3), p a multiple of 4.
vec4 weight4(uint j, uint p, uint rows, uint columns) {
  if (j >= rows || p >= columns) return vec4(0);
  const uint block = b_first + j * b_ld + (p >> 8) * 36, place = p & 255u;
  const uint word = blocks[block + 4 + (place >> 6) * 8 + (place >> 2 & 7u)];
  vec4 w = values_of(line_of(block, place >> 5), word, place >> 3 & 4u);
  if (p + 1 >= columns) w.y = 0;
  if (p + 2 >= columns) w.z = 0;
  if (p + 3 >= columns) w.w = 0;
  return w;
}

float weight(uint j, uint p) { return weight4(j, p & ~3u, n, k)[p & 3u]; }
