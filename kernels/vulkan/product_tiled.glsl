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
layout(set = 0, binding = 0) readonly buffer A4 { STORED4_A a4[]; };
#ifndef B_PACKED
layout(set = 0, binding = 1) readonly buffer B4 { STORED4_B b4[]; };
#endif
#ifdef AFFINE
layout(set = 0, binding = 2) buffer C4 { STORED4_C c4[]; };
layout(set = 0, binding = 3) readonly buffer Addend4 { STORED4 addend4[]; };
#ifdef ADAPTER
layout(constant_id = 1) const bool VECTOR_ADAPTER = false;  // the same of low and factor
layout(set = 0, binding = 4) readonly buffer Low4 { vec4 low4[]; };
layout(set = 0, binding = 5) readonly buffer Factor4 { vec4 factor4[]; };
#endif
#else
layout(set = 0, binding = 2) writeonly buffer C4 { STORED4_C c4[]; };
#endif

const uint S = BLOCK / 64;
const uint DEPTH = 1024 / BLOCK;   // each of the 256 invocations moves one vector of each operand a step
const uint PITCH = BLOCK / 4 + 1;  // vectors from one p to the next: the padding avoids bank conflicts

shared vec4 tile_a[DEPTH * PITCH];  // [p][row]
shared vec4 tile_b[DEPTH * PITCH];  // [p][column]

// Defines `vec4 name(r, s)`: elements (r, s) to (r, s + 3) of a stored matrix, 0 outside it. ONE and FOUR widen them.
#define DEFINE_FETCH(name, data, data4, VECTORS, ONE, FOUR, first, ld, rows, columns)  \
  vec4 name(uint r, uint s) {                                                          \
    vec4 v = vec4(0);                                                                  \
    if (r >= rows || s >= columns) return v;                                           \
    const uint at = first + r * ld + s;                                                \
    if (s + 3 < columns) {                                                             \
      if (VECTORS) return FOUR(data4[at >> 2]);                                        \
      return vec4(ONE(data[at]), ONE(data[at + 1]), ONE(data[at + 2]), ONE(data[at + 3])); \
    }                                                                                  \
    v.x = ONE(data[at]);                                                               \
    if (s + 1 < columns) v.y = ONE(data[at + 1]);                                      \
    if (s + 2 < columns) v.z = ONE(data[at + 2]);                                      \
    return v;                                                                          \
  }
#define DEFINE_FETCH_A(name, rows, columns) \
  DEFINE_FETCH(name, a, a4, VECTOR, LOADED_A, LOADED4_A, a_first, a_ld, rows, columns)
#define DEFINE_FETCH_B(name, rows, columns) \
  DEFINE_FETCH(name, b, b4, VECTOR, LOADED_B, LOADED4_B, b_first, b_ld, rows, columns)

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
DEFINE_FETCH_A(fetch_a, k, m)
#define FETCH_A(p0) ACROSS_P_FETCH(fetch_a, row0, p0)
#define STORE_A(v) ACROSS_P_STORE(tile_a, v)
#else
#ifdef ADAPTER
#define UNCHANGED(x) (x)
DEFINE_FETCH(fetch_low, low, low4, VECTOR_ADAPTER, UNCHANGED, UNCHANGED, low_first, low_ld, m, rank)
DEFINE_FETCH_A(fetch_layer_a, m, k - low_terms)
vec4 fetch_a(uint r, uint p) {
  if (p < low_terms) return fetch_low(r, p);
  return fetch_layer_a(r, p - low_terms);
}
#else
DEFINE_FETCH_A(fetch_a, m, k)
#endif
#define FETCH_A(p0) ALONG_P_FETCH(fetch_a, row0, p0)
#define STORE_A(v) ALONG_P_STORE(tile_a, v)
#endif
#if B_TRANSPOSED
#ifdef B_PACKED
#define fetch_b(r, s) weight4(r, s, n, k)
#elif defined(ADAPTER)
DEFINE_FETCH(fetch_factor, factor, factor4, VECTOR_ADAPTER, UNCHANGED, UNCHANGED, factor_first, factor_ld, n, rank)
DEFINE_FETCH_B(fetch_layer_b, n, k - low_terms)
vec4 fetch_b(uint r, uint p) {
  if (p < low_terms) return fetch_factor(r, p);
  return fetch_layer_b(r, p - low_terms);
}
#else
DEFINE_FETCH_B(fetch_b, n, k)
#endif
#define FETCH_B(p0) ALONG_P_FETCH(fetch_b, column0, p0)
#define STORE_B(v) ALONG_P_STORE(tile_b, v)
#else
#ifdef B_PACKED
#define fetch_b(r, s) weight4(r, s, k, n)
#elif defined(ADAPTER)
DEFINE_FETCH(fetch_factor, factor, factor4, VECTOR_ADAPTER, UNCHANGED, UNCHANGED, factor_first, factor_ld, rank, n)
DEFINE_FETCH_B(fetch_layer_b, k - low_terms, n)
vec4 fetch_b(uint p, uint s) {
  if (p < low_terms) return fetch_factor(p, s);
  return fetch_layer_b(p - low_terms, s);
}
#else
DEFINE_FETCH_B(fetch_b, k, n)
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
                                 : LOADED4_C(c4[at >> 2]);
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
#ifdef B_PACKED
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
#ifdef ADAPTER
    if (p0 + DEPTH == low_terms)
      [[unroll]] for (uint i = 0; i < 4 * S * S; ++i) sum[i] *= low_scale;
#endif
  }
  [[unroll]] for (uint i = 0; i < 4 * S; ++i)
    [[unroll]] for (uint s = 0; s < S; ++s)
      store(row0 + i / 4 * 64 + ly * 4 + i % 4, column0 + s * 64 + lx * 4, sum[i * S + s]);
}
