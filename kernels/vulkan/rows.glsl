// What shaders over rows share: 64 invocations a row, four rows a workgroup, four elements an invocation at a time, and
// sums and maxima over a row in an order that depends on its length alone.
#include "float_controls.glsl"
layout(local_size_x = 64, local_size_y = 4) in;

shared float partial[4][64];

// Elements at..at+3 of a tensor of which `left` follow, at least one; the others are 0.
#define DEFINE_LOAD4(name, data, data4, ALIGNED)                              \
  vec4 name(uint at, uint left) {                                             \
    if (left >= 4) {                                                          \
      if (ALIGNED) return data4[at >> 2];                                     \
      return vec4(data[at], data[at + 1], data[at + 2], data[at + 3]);        \
    }                                                                         \
    vec4 v = vec4(data[at], 0, 0, 0);                                         \
    if (left > 1) v.y = data[at + 1];                                         \
    if (left > 2) v.z = data[at + 2];                                         \
    return v;                                                                 \
  }

#define DEFINE_STORE4(name, data, data4, ALIGNED) \
  void name(uint at, uint left, vec4 v) {         \
    if (left >= 4 && ALIGNED) {                   \
      data4[at >> 2] = v;                         \
      return;                                     \
    }                                             \
    data[at] = v.x;                               \
    if (left > 1) data[at + 1] = v.y;             \
    if (left > 2) data[at + 2] = v.z;             \
    if (left > 3) data[at + 3] = v.w;             \
  }

// A tree over the 64 values of a row. Every invocation of the workgroup takes part: none may miss a barrier.
#ifdef FAULT_NO_BARRIER
#define REDUCE_BARRIER
#else
#define REDUCE_BARRIER barrier();
#endif
#ifdef FAULT_LAST_PARTIALS_LOST
#define REDUCE_END 1
#else
#define REDUCE_END 0
#endif
#define DEFINE_REDUCE(name, COMBINE)                                                 \
  float name(float value) {                                                          \
    const uint lane = gl_LocalInvocationID.x, slot = gl_LocalInvocationID.y;         \
    barrier(); /* the value of the reduction before has been read */                 \
    partial[slot][lane] = value;                                                     \
    REDUCE_BARRIER                                                                   \
    for (uint width = 32; width > REDUCE_END; width >>= 1) {                         \
      if (lane < width) partial[slot][lane] = COMBINE(partial[slot][lane], partial[slot][lane + width]); \
      barrier();                                                                     \
    }                                                                                \
    return partial[slot][0];                                                         \
  }
#define PLUS(a, b) ((a) + (b))
// GLSL's max may lose a NaN; this one keeps what is left of it.
#define LARGER(a, b) ((a) < (b) ? (b) : (a))
float sum4(vec4 v) { return (v.x + v.y) + (v.z + v.w); }
