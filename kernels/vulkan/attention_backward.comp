// dq[i] = scale sum_j ds_ij k[j], ds_ij = p_ij (dy_i · v_j - D_i), p_ij = exp(scale q_i · k_j - logsumexp_i). A
// workgroup takes 64 rows of one sequence and key-value head, and iterates over the keys that they see, 64 at a time.
#pragma shaders attention_backward_64 WIDTH=64; attention_backward_128 WIDTH=128; attention_backward_256 WIDTH=256
#pragma shaders attention_backward_64_f16 WIDTH=64 F16; attention_backward_128_f16 WIDTH=128 F16; attention_backward_256_f16 WIDTH=256 F16
#pragma shaders attention_backward_64_bf16 WIDTH=64 BF16; attention_backward_128_bf16 WIDTH=128 BF16; attention_backward_256_bf16 WIDTH=256 BF16
#extension GL_GOOGLE_include_directive : require
#include "attention_backward.glsl"

layout(set = 0, binding = 5) writeonly buffer Dq { STORED dq[]; };
layout(set = 0, binding = 5) writeonly buffer Dq4 { STORED4 dq4[]; };
layout(push_constant) uniform Push {
  uvec4 of_q, of_k, of_v, of_dy, of_dq;
  uint rows, group, d;
  float scale;
};
DEFINE_STORE4_STORED(store_dq, dq, dq4, VECTOR)
#include "attention_tile.glsl"

// Number of visible keys per row; the sums are masked by it.
uvec4 seen;
uint key0, b, g;

#define KEY_SEEN(e, j) (key0 + (j) < seen[e])
#define KEY_OF(other) at(of_k, b, other, g)
DEFINE_PRODUCTS(scores_of, load_q, load_k)
DEFINE_PRODUCTS(upstream_of, load_dy, load_v)
DEFINE_SUMS(add_keys, load_k, KEY_OF, KEY_SEEN)

void main() {
  const uint index = gl_LocalInvocationIndex, lx = gl_LocalInvocationID.x, ly = gl_LocalInvocationID.y;
  const uint row0 = gl_WorkGroupID.x * BLOCK;
  b = gl_WorkGroupID.y;
  g = gl_WorkGroupID.z;
  load_rows((b * gl_NumWorkGroups.z + g) * rows + row0, rows - row0);
  const vec4 log_sum = logsumexp_of[ly], along = along_of[ly];
  seen = seen_of[ly];
  const uvec2 range = seen_range();
  const uint moved = row0 + index / 4;
  const uint q_at = at(of_q, b, moved / group, head_of(g, moved, group));
  const uint dy_at = at(of_dy, b, moved / group, head_of(g, moved, group));
  vec4 sums[4 * COLUMNS];
  [[unroll]] for (uint i = 0; i < 4 * COLUMNS; ++i) sums[i] = vec4(0);
  for (key0 = 0; key0 < range.y; key0 += BLOCK) {
    const uint key = key0 + index / 4;
    vec4 score[4], dp[4];
    scores_of(moved < rows, q_at, key < range.y, at(of_k, b, key, g), score);
    upstream_of(moved < rows, dy_at, key < range.y, at(of_v, b, key, g), dp);
    [[unroll]] for (uint j = 0; j < 4; ++j) {
      vec4 ds = vec4(0);
      [[unroll]] for (uint e = 0; e < 4; ++e)
        if (KEY_SEEN(e, lx * 4 + j)) ds[e] = gradient(scale * score[j][e], dp[j][e], log_sum[e], along[e]).y;
      factors[(lx * 4 + j) * PITCH + ly] = ds;
    }
    add_keys(sums, key0, range.y, min(key0 + BLOCK, range.y) > range.x);
  }
  [[unroll]] for (uint e = 0; e < 4; ++e) {
    const uint row = row0 + ly * 4 + e;
    if (row < rows)
      [[unroll]] for (uint n = 0; n < COLUMNS; ++n) {
        const uint c = n * 64 + lx * 4;
        if (c < d) store_dq(at(of_dq, b, row / group, head_of(g, row, group)) + c, d - c, scale * sums[e * COLUMNS + n]);
      }
  }
}
