// Building blocks of shaders over rows: 64 invocations a row, four rows a workgroup, four elements an invocation at a
// time, and sums and maxima over a row in an order that depends on its length alone.
#include "storage.glsl"
#include "vectors.glsl"
layout(local_size_x = 64, local_size_y = 4) in;

shared float partial[4][64];

// Reduces the 64 values of a row by a tree. Every invocation of the workgroup takes part: none may miss a barrier.
#define DEFINE_REDUCE(name, COMBINE)                                                 \
  float name(float value) {                                                          \
    const uint lane = gl_LocalInvocationID.x, slot = gl_LocalInvocationID.y;         \
    barrier(); /* previous reduction's value has been read */                        \
    partial[slot][lane] = value;                                                     \
    barrier();                                                                       \
    for (uint width = 32; width > 0; width >>= 1) {                                  \
      if (lane < width) partial[slot][lane] = COMBINE(partial[slot][lane], partial[slot][lane + width]); \
      barrier();                                                                     \
    }                                                                                \
    return partial[slot][0];                                                         \
  }
#define PLUS(a, b) ((a) + (b))
// GLSL's max may discard a NaN; LARGER keeps a NaN in its left operand.
#define LARGER(a, b) ((a) < (b) ? (b) : (a))
float sum4(vec4 v) { return (v.x + v.y) + (v.z + v.w); }
