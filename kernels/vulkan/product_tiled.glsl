// BLOCK x BLOCK outputs per workgroup of 16x16 invocations, each with (BLOCK/16)^2 outputs in registers: S x S squares
// of 4x4, 64 apart. DEPTH terms of the sum at a time pass through shared memory; the next terms are fetched while the
// current ones are used. Sums run over p in order, so the result does not depend on BLOCK. Loops are unrolled to
// constant trip counts: drivers' optimizers then keep the sums in registers. 16-bit elements are widened as they are
// fetched, once each: the tiles in shared memory are float32 in every variant.
#extension GL_EXT_control_flow_attributes : require
layout(local_size_x = 16, local_size_y = 16) in;

// True if every row of A, B, C and the addend starts at a multiple of four elements: loads and stores then move four
// of them, 16 or 8 bytes.
layout(constant_id = 0) const bool VECTOR = false;
layout(set = 0, binding = 0) readonly buffer A4 { STORED4 a4[]; };
#ifndef B_NF4
layout(set = 0, binding = 1) readonly buffer B4 { STORED4 b4[]; };
#endif
#ifdef AFFINE
layout(set = 0, binding = 2) buffer C4 { STORED4_C c4[]; };
layout(set = 0, binding = 3) readonly buffer Addend4 { STORED4 addend4[]; };
#else
layout(set = 0, binding = 2) writeonly buffer C4 { STORED4_C c4[]; };
#endif

const uint S = BLOCK / 64;
const uint DEPTH = 1024 / BLOCK;   // each of the 256 invocations moves one vector of each operand a step
const uint PITCH = BLOCK / 4 + 1;  // vectors from one p to the next: the padding avoids bank conflicts

shared vec4 tile_a[DEPTH * PITCH];  // [p][row]
shared vec4 tile_b[DEPTH * PITCH];  // [p][column]

// Defines `vec4 name(r, s)`: elements (r, s) to (r, s + 3) of a stored matrix, 0 outside it.
#define DEFINE_FETCH(name, data, data4, first, ld, rows, columns)                                      \
  vec4 name(uint r, uint s) {                                                                          \
    vec4 v = vec4(0);                                                                                  \
    if (r >= rows || s >= columns) return v;                                                           \
    const uint at = first + r * ld + s;                                                                \
    if (s + 3 < columns) {                                                                             \
      if (VECTOR) return LOADED4(data4[at >> 2]);                                                      \
      return vec4(LOADED(data[at]), LOADED(data[at + 1]), LOADED(data[at + 2]), LOADED(data[at + 3])); \
    }                                                                                                  \
    v.x = LOADED(data[at]);                                                                            \
    if (s + 1 < columns) v.y = LOADED(data[at + 1]);                                                   \
    if (s + 2 < columns) v.z = LOADED(data[at + 2]);                                                   \
    return v;                                                                                          \
  }

// The vector that invocation t moves: its position in the operand (origin: first row or column of this workgroup's
// block), and its position in the tile. Stored rows run along p or across it.
#define ALONG_P_FETCH(fetch, origin, p0) fetch(origin + t / (DEPTH / 4), p0 + t % (DEPTH / 4) * 4)
#define ALONG_P_STORE(tile, v)                                       \
  [[unroll]] for (uint e = 0; e < 4; ++e) {                          \
    const uint outer = t / (DEPTH / 4), p = t % (DEPTH / 4) * 4 + e; \
    tile[p * PITCH + outer / 4][outer % 4] = v[e];                   \
  }
#define ACROSS_P_FETCH(fetch, origin, p0) fetch(p0 + t / (BLOCK / 4), origin + t % (BLOCK / 4) * 4)
#define ACROSS_P_STORE(tile, v) tile[t / (BLOCK / 4) * PITCH + t % (BLOCK / 4)] = v;

#if A_TRANSPOSED
DEFINE_FETCH(fetch_a, a, a4, a_first, a_ld, k, m)
#define FETCH_A(p0) ACROSS_P_FETCH(fetch_a, row0, p0)
#define STORE_A(v) ACROSS_P_STORE(tile_a, v)
#else
DEFINE_FETCH(fetch_a, a, a4, a_first, a_ld, m, k)
#define FETCH_A(p0) ALONG_P_FETCH(fetch_a, row0, p0)
#define STORE_A(v) ALONG_P_STORE(tile_a, v)
#endif
#if B_TRANSPOSED
#ifdef B_NF4
#define fetch_b(r, s) weight4(r, s, n, k)
#else
DEFINE_FETCH(fetch_b, b, b4, b_first, b_ld, n, k)
#endif
#define FETCH_B(p0) ALONG_P_FETCH(fetch_b, column0, p0)
#define STORE_B(v) ALONG_P_STORE(tile_b, v)
#else
#ifdef B_NF4
#define fetch_b(r, s) weight4(r, s, k, n)
#else
DEFINE_FETCH(fetch_b, b, b4, b_first, b_ld, k, n)
#endif
#define FETCH_B(p0) ACROSS_P_FETCH(fetch_b, column0, p0)
#define STORE_B(v) ACROSS_P_STORE(tile_b, v)
#endif

void store(uint row, uint column, vec4 v) {
  if (row >= m || column >= n) return;
  const uint at = c_first + row * c_ld + column;
  if (VECTOR && column + 3 < n) {
#ifdef AFFINE
    const vec4 plus = add == 0   ? vec4(0)
                      : add == 1 ? LOADED4(addend4[addend_first + row * addend_ld + column >> 2])
                                 : LOADED4(c4[at >> 2]);
    c4[at >> 2] = STORE4_C(fma(vec4(scale), v, plus));
#else
    c4[at >> 2] = STORE4_C(v);
#endif
    return;
  }
  c[at] = STORE_C(finished(v.x, row, column));
  if (column + 1 < n) c[at + 1] = STORE_C(finished(v.y, row, column + 1));
  if (column + 2 < n) c[at + 2] = STORE_C(finished(v.z, row, column + 2));
  if (column + 3 < n) c[at + 3] = STORE_C(finished(v.w, row, column + 3));
}

void main() {
  const uint t = gl_LocalInvocationIndex, lx = gl_LocalInvocationID.x, ly = gl_LocalInvocationID.y;
  const uint row0 = gl_WorkGroupID.y * BLOCK, column0 = gl_WorkGroupID.x * BLOCK;
  vec4 sum[4 * S * S];  // [square row][row in it][square column]
  [[unroll]] for (uint i = 0; i < 4 * S * S; ++i) sum[i] = vec4(0);
#ifdef B_NF4
  load_table();
#endif
  vec4 next_a = FETCH_A(0), next_b = FETCH_B(0);
  for (uint p0 = 0; p0 < k; p0 += DEPTH) {
    STORE_A(next_a)
    STORE_B(next_b)
    barrier();
    next_a = FETCH_A(p0 + DEPTH);
    next_b = FETCH_B(p0 + DEPTH);
    [[unroll]] for (uint p = 0; p < DEPTH; ++p) {
      vec4 x[S], y[S];
      [[unroll]] for (uint s = 0; s < S; ++s) {
        x[s] = tile_a[p * PITCH + s * 16 + ly];
        y[s] = tile_b[p * PITCH + s * 16 + lx];
      }
      [[unroll]] for (uint i = 0; i < 4 * S; ++i)
        [[unroll]] for (uint s = 0; s < S; ++s)
          sum[i * S + s] = fma(vec4(x[i / 4][i % 4]), y[s], sum[i * S + s]);
    }
    barrier();
  }
  [[unroll]] for (uint i = 0; i < 4 * S; ++i)
    [[unroll]] for (uint s = 0; s < S; ++s)
      store(row0 + i / 4 * 64 + ly * 4 + i % 4, column0 + s * 64 + lx * 4, sum[i * S + s]);
}
