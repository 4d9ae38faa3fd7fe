// dk[j] = scale sum_i ds_ij q[i] and dv[j] = sum_i p_ij dy[i], over the rows i of every head of the group, in order. A
// workgroup takes 64 keys of one sequence and key-value head, and iterates over the rows, 64 at a time; it skips tiles
// of rows that see none of the keys.
#pragma shaders attention_backward_kv_64 WIDTH=64; attention_backward_kv_128 WIDTH=128; attention_backward_kv_256 WIDTH=256
#pragma shaders attention_backward_kv_64_f16 WIDTH=64 F16; attention_backward_kv_128_f16 WIDTH=128 F16; attention_backward_kv_256_f16 WIDTH=256 F16
#pragma shaders attention_backward_kv_64_bf16 WIDTH=64 BF16; attention_backward_kv_128_bf16 WIDTH=128 BF16; attention_backward_kv_256_bf16 WIDTH=256 BF16
#extension GL_GOOGLE_include_directive : require
#include "attention_backward.glsl"

layout(set = 0, binding = 5) writeonly buffer Dk { STORED dk[]; };
layout(set = 0, binding = 5) writeonly buffer Dk4 { STORED4 dk4[]; };
layout(set = 0, binding = 6) writeonly buffer Dv { STORED dv[]; };
layout(set = 0, binding = 6) writeonly buffer Dv4 { STORED4 dv4[]; };
layout(push_constant) uniform Push {
  uvec4 of_q, of_k, of_v, of_dy, of_dk, of_dv;
  uint rows, t, group, d;
  float scale;
};
DEFINE_STORE4_STORED(store_dk, dk, dk4, VECTOR)
DEFINE_STORE4_STORED(store_dv, dv, dv4, VECTOR)
#include "attention_tile.glsl"

// Index of each key; the sums are masked by it.
uvec4 own_key;
uint b, g;

#define KEY_SEEN(e, j) (own_key[e] < seen_of[(j) / 4][(j) % 4])
#define QUERY_OF(other) at(of_q, b, (other) / group, head_of(g, other, group))
#define UPSTREAM_OF(other) at(of_dy, b, (other) / group, head_of(g, other, group))
DEFINE_PRODUCTS(scores_of, load_k, load_q)
DEFINE_PRODUCTS(upstream_of, load_v, load_dy)
DEFINE_SUMS(add_queries, load_q, QUERY_OF, KEY_SEEN)
DEFINE_SUMS(add_upstream, load_dy, UPSTREAM_OF, KEY_SEEN)

void main() {
  const uint index = gl_LocalInvocationIndex, lx = gl_LocalInvocationID.x, ly = gl_LocalInvocationID.y;
  const uint key0 = gl_WorkGroupID.x * BLOCK, moved = key0 + index / 4;
  b = gl_WorkGroupID.y;
  g = gl_WorkGroupID.z;
  own_key = uvec4(key0 + ly * 4) + uvec4(0, 1, 2, 3);
  vec4 of_key[4 * COLUMNS], of_value[4 * COLUMNS];
  [[unroll]] for (uint i = 0; i < 4 * COLUMNS; ++i) of_key[i] = of_value[i] = vec4(0);
  for (uint row0 = 0; row0 < rows; row0 += BLOCK) {
    load_rows((b * gl_NumWorkGroups.z + g) * rows + row0, rows - row0);
    const uvec2 range = seen_range();
    if (range.y <= key0) continue;
    const bool masked = range.x < min(key0 + BLOCK, t);
    const uint row = row0 + index / 4;
    vec4 score[4], dp[4];
    const bool needed = moved < min(range.y, t);
    scores_of(needed, at(of_k, b, moved, g), row < rows, QUERY_OF(row), score);
    upstream_of(needed, at(of_v, b, moved, g), row < rows, UPSTREAM_OF(row), dp);
    vec4 ds[4];
    [[unroll]] for (uint j = 0; j < 4; ++j) {
      vec4 p = vec4(0);
      ds[j] = vec4(0);
      [[unroll]] for (uint e = 0; e < 4; ++e) {
        if (KEY_SEEN(e, lx * 4 + j)) {
          const vec2 pair = gradient(scale * score[j][e], dp[j][e], logsumexp_of[lx][j], along_of[lx][j]);
          p[e] = pair.x;
          ds[j][e] = pair.y;
        }
      }
      factors[(lx * 4 + j) * PITCH + ly] = p;
    }
    add_upstream(of_value, row0, rows, masked);
    barrier();  // p has been used
    [[unroll]] for (uint j = 0; j < 4; ++j) factors[(lx * 4 + j) * PITCH + ly] = ds[j];
    add_queries(of_key, row0, rows, masked);
  }
  [[unroll]] for (uint e = 0; e < 4; ++e)
    if (own_key[e] < t)
      [[unroll]] for (uint n = 0; n < COLUMNS; ++n) {
        const uint c = n * 64 + lx * 4;
        if (c < d) {
          store_dk(at(of_dk, b, own_key[e], g) + c, d - c, scale * of_key[e * COLUMNS + n]);
          store_dv(at(of_dv, b, own_key[e], g) + c, d - c, of_value[e * COLUMNS + n]);
        }
      }
}
