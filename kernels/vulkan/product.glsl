// What the three matrix products share: buffers, push constants, and the choice of algorithm.
// A stored matrix X starts at element x_first of its buffer; element (r, s) is x_first + r * x_ld + s.
// Products and sums are plain float32; a driver may fuse them. Subnormals may be flushed.
// A FAULT_* macro, never defined in a kernel, makes a mutant of it (falsify/mutants/vulkan).
#include "float_controls.glsl"

// B_NF4 makes B a matrix in NF4 codes.
layout(set = 0, binding = 0) readonly buffer A { float a[]; };
#ifndef B_NF4
layout(set = 0, binding = 1) readonly buffer B { float b[]; };
#endif
#ifdef FAULT_STALE_ACCUMULATOR
layout(set = 0, binding = 2) buffer C { float c[]; };
#else
layout(set = 0, binding = 2) writeonly buffer C { float c[]; };
#endif
layout(push_constant) uniform Push {
  uint m, k, n;
  uint a_first, a_ld;
  uint b_first, b_ld;
  uint c_first, c_ld;
#ifdef B_NF4
  uint absmax_first, absmax_ld;
  uint w_k;  // columns of W
  float codebook[16];
#endif
};
#ifdef B_NF4
#include "nf4_operand.glsl"
#endif

#ifdef BLOCK
#include "product_tiled.glsl"
#else
#include "product_naive16.glsl"
#endif
