// Buffers, push constants, and the choice of algorithm, shared by the three matrix products.
// A stored matrix X starts at element x_first of its buffer; element (r, s) is x_first + r * x_ld + s.
// Elements are stored in the variant's format (storage.glsl); with C_IS_F32 those of C are f32 in every variant.
// Products and sums are plain float32; a driver may fuse them. Subnormals may be flushed. 16-bit results are rounded
// once.
// With AFFINE a sum is scaled and added to an element of the addend, or of C itself.
#include "storage.glsl"
#ifdef C_IS_F32
#define STORED_C float
#define STORED4_C vec4
#define STORE_C(x) (x)
#define STORE4_C(x) (x)
#else
#define STORED_C STORED
#define STORED4_C STORED4
#define STORE_C(x) STORE(x)
#define STORE4_C(x) STORE4(x)
#endif

// B_NF4 makes B a matrix in NF4 codes.
layout(set = 0, binding = 0) readonly buffer A { STORED a[]; };
#ifndef B_NF4
layout(set = 0, binding = 1) readonly buffer B { STORED b[]; };
#endif
#ifdef AFFINE
layout(set = 0, binding = 2) buffer C { STORED_C c[]; };
#else
layout(set = 0, binding = 2) writeonly buffer C { STORED_C c[]; };
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
layout(set = 0, binding = 3) readonly buffer Addend { STORED addend[]; };

// Epilogue: returns the element of C at (row, column) from its sum, not yet rounded to the format of C.
float finished(float sum, uint row, uint column) {
  if (add == 0) return scale * sum;
  return fma(scale, sum, add == 1 ? LOADED(addend[addend_first + row * addend_ld + column])
                                  : LOADED(c[c_first + row * c_ld + column]));
}
#else
float finished(float sum, uint row, uint column) { return sum; }
#endif

#ifdef BLOCK
#include "product_tiled.glsl"
#else
#include "product_naive16.glsl"
#endif
