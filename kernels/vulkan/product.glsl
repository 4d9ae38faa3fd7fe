// Buffers, push constants, and the choice of algorithm, shared by the three matrix products.
// A stored matrix X starts at element x_first of its buffer; element (r, s) is x_first + r * x_ld + s.
// Elements are stored in the variant's format (storage.glsl); with A_IS_F32, B_IS_F32 or C_IS_F32 those of A, B or C
// are f32 in every variant.
// Products and sums are plain float32; a driver may fuse them. Subnormals may be flushed. 16-bit results are rounded
// once.
// With AFFINE a sum is scaled and added to an element of the addend, or of C itself.
// With ADAPTER, too, a sum begins with low_scale * (low * factor), both f32: k counts the terms of both products, of
// which the first low_terms are those of low * factor, `rank` of them followed by zeros up to a whole step of the loop.
#include "storage.glsl"
#ifdef A_IS_F32
#define STORED_A float
#define STORED4_A vec4
#define LOADED_A(x) (x)
#define LOADED4_A(x) (x)
#else
#define STORED_A STORED
#define STORED4_A STORED4
#define LOADED_A(x) LOADED(x)
#define LOADED4_A(x) LOADED4(x)
#endif
#ifdef B_IS_F32
#define STORED_B float
#define STORED4_B vec4
#define LOADED_B(x) (x)
#define LOADED4_B(x) (x)
#else
#define STORED_B STORED
#define STORED4_B STORED4
#define LOADED_B(x) LOADED(x)
#define LOADED4_B(x) LOADED4(x)
#endif
#ifdef C_IS_F32
#define STORED_C float
#define STORED4_C vec4
#define LOADED_C(x) (x)
#define LOADED4_C(x) (x)
#define STORE_C(x) (x)
#define STORE4_C(x) (x)
#else
#define STORED_C STORED
#define STORED4_C STORED4
#define LOADED_C(x) LOADED(x)
#define LOADED4_C(x) LOADED4(x)
#define STORE_C(x) STORE(x)
#define STORE4_C(x) STORE4(x)
#endif

// B_NF4 and B_Q4_K make B a matrix in that format.
#if defined(B_NF4) || defined(B_Q4_K)
#define B_PACKED
#endif
layout(set = 0, binding = 0) readonly buffer A { STORED_A a[]; };
#ifndef B_PACKED
layout(set = 0, binding = 1) readonly buffer B { STORED_B b[]; };
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
#ifdef ADAPTER
  uint low_terms, rank;
  uint low_first, low_ld;
  uint factor_first, factor_ld;
  float low_scale;
#endif
#ifdef B_NF4
  uint absmax_first, absmax_ld;
  uint w_k;  // columns of W
  float codebook[16];
#endif
};
#if defined(B_NF4)
#include "nf4_operand.glsl"
#elif defined(B_Q4_K)
#include "q4_k_operand.glsl"
#endif
#ifdef AFFINE
layout(set = 0, binding = 3) readonly buffer Addend { STORED addend[]; };
#ifdef ADAPTER
layout(set = 0, binding = 4) readonly buffer Low { float low[]; };        // [m, rank]
layout(set = 0, binding = 5) readonly buffer Factor { float factor[]; };  // stored as B is
#endif

// Epilogue: returns the element of C at (row, column) from its sum, not yet rounded to the format of C.
float finished(float sum, uint row, uint column) {
  if (add == 0) return scale * sum;
  return fma(scale, sum, add == 1 ? LOADED(addend[addend_first + row * addend_ld + column])
                                  : LOADED_C(c[c_first + row * c_ld + column]));
}
#else
float finished(float sum, uint row, uint column) { return sum; }
#endif

#ifdef BLOCK
#include "product_tiled.glsl"
#else
#include "product_naive16.glsl"
#endif
