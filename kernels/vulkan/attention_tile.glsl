// A workgroup's own 64 rows against tiles of 64 others, by 16x16 invocations: dot products of rows, and sums of the
// others weighted by one factor per pair. Invocation (lx, ly) has own rows 4 ly .. 4 ly + 3, the others 4 lx .. 4 lx +
// 3 of a product, and the columns 64 s + 4 lx .. + 3 of a sum. WIDTH, a multiple of 64, is at least d.
#extension GL_EXT_control_flow_attributes : require
layout(local_size_x = 16, local_size_y = 16) in;

const uint BLOCK = 64;
const uint DEPTH = 16;             // elements of a product that pass through shared memory at a time
const uint PITCH = BLOCK / 4 + 1;  // vectors from one element or other to the next, padded against bank conflicts
const uint COLUMNS = WIDTH / 64;   // vectors that an invocation holds of a row of sums
const uint CHUNK = 32 / COLUMNS;   // others whose elements pass through shared memory at a time
const uint STEP = 4;               // unrolled iterations of either loop: more take llvmpipe many seconds to compile

shared vec4 staged[2 * DEPTH * PITCH];  // [operand][element][row], or [other][column]
shared vec4 factors[BLOCK * PITCH];     // [other][own row]

// Defines `name(own, own_at, other, other_at, products)`: products[j][e] is own row e times other j. An invocation
// moves elements of own row index / 4 and of other index / 4, which start at own_at and other_at; rows that do not
// exist are zeros.
#define DEFINE_PRODUCTS(name, load_own, load_other)                                                   \
  void name(bool own, uint own_at, bool other, uint other_at, out vec4 products[4]) {                 \
    const uint index = gl_LocalInvocationIndex, row = index / 4, part = index % 4 * 4;                \
    const uint lx = gl_LocalInvocationID.x, ly = gl_LocalInvocationID.y;                              \
    [[unroll]] for (uint j = 0; j < 4; ++j) products[j] = vec4(0);                                    \
    for (uint c0 = 0; c0 < d; c0 += DEPTH) {                                                          \
      const uint c = c0 + part;                                                                       \
      vec4 x = vec4(0), z = vec4(0);                                                                  \
      if (own && c < d) x = load_own(own_at + c, d - c);                                              \
      if (other && c < d) z = load_other(other_at + c, d - c);                                        \
      barrier(); /* previous tile has been read */                                                    \
      [[unroll]] for (uint e = 0; e < 4; ++e) {                                                       \
        staged[(part + e) * PITCH + row / 4][row % 4] = x[e];                                         \
        staged[(DEPTH + part + e) * PITCH + row / 4][row % 4] = z[e];                                 \
      }                                                                                               \
      barrier(); /* tile is stored */                                                                 \
      [[dont_unroll]] for (uint step = 0; step < DEPTH; step += STEP)                                 \
        [[unroll]] for (uint i = 0; i < STEP; ++i) {                                                  \
          const vec4 a = staged[(step + i) * PITCH + ly], b = staged[(DEPTH + step + i) * PITCH + lx];\
          [[unroll]] for (uint j = 0; j < 4; ++j) products[j] = fma(a, vec4(b[j]), products[j]);      \
        }                                                                                             \
    }                                                                                                 \
  }

// Defines `name(sums, first, end, masked)`: sums[e * COLUMNS + s] += factors of own row e times columns of the others
// `first` to `end`, at most BLOCK of them, which start at ADDRESS(other). If masked, only pairs that VISIBLE(e, other)
// allows take part: zero times an invisible value may be NaN.
#define WEIGHT_OTHERS(TAKES_PART)                                                                     \
  [[dont_unroll]] for (uint step = 0; step < CHUNK; step += STEP)                                     \
    [[unroll]] for (uint i = 0; i < STEP; ++i) {                                                      \
      const uint j = step + i;                                                                        \
      const vec4 factor = factors[(j0 + j) * PITCH + ly];                                             \
      [[unroll]] for (uint s = 0; s < COLUMNS; ++s) {                                                 \
        const vec4 x = staged[j * (WIDTH / 4) + s * 16 + lx];                                         \
        [[unroll]] for (uint e = 0; e < 4; ++e)                                                       \
          if (TAKES_PART) sums[e * COLUMNS + s] = fma(vec4(factor[e]), x, sums[e * COLUMNS + s]);     \
      }                                                                                               \
    }
#define DEFINE_SUMS(name, load, ADDRESS, VISIBLE)                                                     \
  void name(inout vec4 sums[4 * COLUMNS], uint first, uint end, bool masked) {                        \
    const uint index = gl_LocalInvocationIndex, lx = gl_LocalInvocationID.x, ly = gl_LocalInvocationID.y; \
    for (uint j0 = 0; j0 < BLOCK && first + j0 < end; j0 += CHUNK) {                                  \
      vec4 moved[2];                                                                                  \
      [[unroll]] for (uint i = 0; i < 2; ++i) {                                                       \
        const uint n = index + i * 256, other = first + j0 + n / (WIDTH / 4), c = n % (WIDTH / 4) * 4; \
        moved[i] = vec4(0);                                                                           \
        if (other < end && c < d) moved[i] = load(ADDRESS(other) + c, d - c);                         \
      }                                                                                               \
      barrier(); /* previous tile has been read */                                                    \
      [[unroll]] for (uint i = 0; i < 2; ++i) staged[index + i * 256] = moved[i];                     \
      barrier(); /* tile is stored */                                                                 \
      if (masked) {                                                                          \
        WEIGHT_OTHERS(VISIBLE(e, j0 + j))                                                             \
      } else {                                                                                        \
        WEIGHT_OTHERS(true)                                                                           \
      }                                                                                               \
    }                                                                                                 \
  }
