// y[i] = sum_j p_ij v[j], p = softmax(scale q k^T) over the keys that row i sees; also writes logsumexp. A workgroup
// takes 64 rows of one sequence and key-value head, and iterates over its keys 64 at a time with an online softmax:
// when a row's maximum grows, its sums are rescaled by exp(old maximum - new maximum). At most one tile of scores
// exists at a time.
#pragma shaders attention_tiled_64 WIDTH=64; attention_tiled_128 WIDTH=128; attention_tiled_256 WIDTH=256
#pragma shaders attention_tiled_64_f16 WIDTH=64 F16; attention_tiled_128_f16 WIDTH=128 F16; attention_tiled_256_f16 WIDTH=256 F16
#pragma shaders attention_tiled_64_bf16 WIDTH=64 BF16; attention_tiled_128_bf16 WIDTH=128 BF16; attention_tiled_256_bf16 WIDTH=256 BF16
#extension GL_GOOGLE_include_directive : require
#include "attention.glsl"
#include "attention_tile.glsl"

// Number of visible keys per row; KEY_SEEN masks the sums by it.
uvec4 seen;
uint key0, b, g;

#define KEY_SEEN(e, j) (key0 + (j) < seen[e])
#define VALUE_OF(other) at(of_v, b, other, g)
DEFINE_PRODUCTS(scores_of, load_q, load_k)
DEFINE_SUMS(add_values, load_v, VALUE_OF, KEY_SEEN)

void main() {
  const uint index = gl_LocalInvocationIndex, lx = gl_LocalInvocationID.x, ly = gl_LocalInvocationID.y;
  const uint rows = s * group, row0 = gl_WorkGroupID.x * BLOCK;
  b = gl_WorkGroupID.y;
  g = gl_WorkGroupID.z;
  [[unroll]] for (uint e = 0; e < 4; ++e) seen[e] = keys_seen(b, min(row0 + ly * 4 + e, rows - 1) / group);
  const uint least = keys_seen(b, row0 / group), most = keys_seen(b, (min(row0 + BLOCK, rows) - 1) / group);
  const uint moved = row0 + index / 4;
  const uint q_at = at(of_q, b, moved / group, head_of(g, moved, group));
  vec4 largest = vec4(-INFINITY), total = vec4(0), sums[4 * COLUMNS];
  [[unroll]] for (uint i = 0; i < 4 * COLUMNS; ++i) sums[i] = vec4(0);
  for (key0 = 0; key0 < most; key0 += BLOCK) {
    const uint key = key0 + index / 4;
    vec4 score[4];
    scores_of(moved < rows, q_at, key < most, at(of_k, b, key, g), score);
    vec4 top = vec4(-INFINITY);
    [[unroll]] for (uint j = 0; j < 4; ++j)
      [[unroll]] for (uint e = 0; e < 4; ++e) {
        const bool visible = KEY_SEEN(e, lx * 4 + j);
        score[j][e] = visible ? scale * score[j][e] : -INFINITY;
        top[e] = top[e] < score[j][e] ? score[j][e] : top[e];  // NaN never becomes the maximum: its weight is NaN
      }
    barrier();  // products have been read
    staged[index] = top;
    barrier();
    vec4 now = largest;
    [[unroll]] for (uint n = 0; n < 16; ++n) {
      const vec4 other = staged[ly * 16 + n];
      now = mix(now, other, lessThan(now, other));
    }
    vec4 sum = vec4(0), factor;
    [[unroll]] for (uint e = 0; e < 4; ++e) {
      const float shift = now[e] == -INFINITY ? 0 : now[e];
      [[unroll]] for (uint j = 0; j < 4; ++j) score[j][e] = exp_of(score[j][e] - shift);
      factor[e] = largest[e] < now[e] && largest[e] > -INFINITY ? exp(largest[e] - now[e]) : 1;
    }
    [[unroll]] for (uint j = 0; j < 4; ++j) {
      factors[(lx * 4 + j) * PITCH + ly] = score[j];
      sum += score[j];
    }
    staged[256 + index] = sum;
    barrier();
    total *= factor;
    [[unroll]] for (uint n = 0; n < 16; ++n) total += staged[256 + ly * 16 + n];
    [[unroll]] for (uint i = 0; i < 4 * COLUMNS; ++i) sums[i] *= factor[i / COLUMNS];
    largest = now;
    add_values(sums, key0, most, min(key0 + BLOCK, most) > least);
  }
  [[unroll]] for (uint e = 0; e < 4; ++e) {
    const uint row = row0 + ly * 4 + e, i = row / group, h = head_of(g, row, group);
    if (row < rows) {
      const bool nothing = total[e] == 0;
      [[unroll]] for (uint n = 0; n < COLUMNS; ++n) {
        const uint c = n * 64 + lx * 4;
        if (c < d) store_y(at(of_y, b, i, h) + c, d - c, nothing ? vec4(0) : sums[e * COLUMNS + n] / total[e]);
      }
      if (lx == 0) store_logsumexp(b, h, i, nothing ? -INFINITY : isnan(total[e]) ? total[e] : largest[e] + log(total[e]));
    }
  }
}
