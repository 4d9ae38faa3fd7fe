// Buffers, push constants, and the choice of algorithm, shared by the three matrix products.
// A stored matrix X starts at element x_first of its buffer; element (r, s) is x_first + r * x_ld + s.
// Products and sums are plain float32; a driver may fuse them. Subnormals may be flushed.
// With AFFINE a sum is scaled and added to an element of the addend, or of C itself.
#include "float_controls.glsl"

// B_NF4 makes B a matrix in NF4 codes.
layout(set = 0, binding = 0) readonly buffer A { float a[]; };
#ifndef B_NF4
layout(set = 0, binding = 1) readonly buffer B { float b[]; };
#endif
#ifdef AFFINE
layout(set = 0, binding = 2) buffer C { float c[]; };
#else
layout(set = 0, binding = 2) writeonly buffer C { float c[]; };
#endif
layout(push_constant) uniform Push {
  uint m, k, n;
  uint a_first, a_ld;
  uint b_first, b_ld;
  uint c_first, c_ld;
#ifdef AFFINE
  uint add;  // 0: nothing, 1: the addend, 2: C
  uint addend_first, addend_ld;
  float scale;
#endif
#ifdef B_NF4
  uint absmax_first, absmax_ld;
  uint w_k;  // columns of W
  float codebook[16];
#endif
};
#ifdef B_NF4
#include "nf4_operand.glsl"
#endif
#ifdef AFFINE
layout(set = 0, binding = 3) readonly buffer Addend { float addend[]; };

// Epilogue: returns the element of C at (row, column) from its sum.
float finished(float sum, uint row, uint column) {
  if (add == 0) return scale * sum;
  return fma(scale, sum, add == 1 ? addend[addend_first + row * addend_ld + column] : c[c_first + row * c_ld + column]);
}
#else
float finished(float sum, uint row, uint column) { return sum; }
#endif

#ifdef BLOCK
#include "product_tiled.glsl"
#else
#include "product_naive16.glsl"
#endif
