// Computes, for each row of queries, the inputs of attention's gradients: its logsumexp, D = dy · y, and the number of
// keys it sees (0 if its logsumexp is -inf). 64 invocations a row.
#pragma shaders attention_backward_rows; attention_backward_rows_f16 F16; attention_backward_rows_bf16 BF16
#extension GL_GOOGLE_include_directive : require
#include "rows.glsl"
#include "exponential.glsl"
#include "attention_rows.glsl"

layout(constant_id = 0) const bool VECTOR = false;
layout(set = 0, binding = 0) readonly buffer Y { STORED y[]; };
layout(set = 0, binding = 0) readonly buffer Y4 { STORED4 y4[]; };
layout(set = 0, binding = 1) readonly buffer Dy { STORED dy[]; };
layout(set = 0, binding = 1) readonly buffer Dy4 { STORED4 dy4[]; };
layout(set = 0, binding = 2) readonly buffer Logsumexp { float logsumexp[]; };
layout(set = 0, binding = 3) readonly buffer Lengths { int lengths[]; };
layout(set = 0, binding = 4) readonly buffer Starts { int starts[]; };
layout(set = 0, binding = 5) writeonly buffer Rows { uvec4 row_of[]; };
layout(push_constant) uniform Push {
  uvec4 of_y, of_dy;
  uint logsumexp_first, logsumexp_batch, logsumexp_head, lengths_first, starts_first;
  uint rows, s, t, kv_heads, group, d, causal;
};
DEFINE_LOAD4_STORED(load_y, y, y4, VECTOR)
DEFINE_LOAD4_STORED(load_dy, dy, dy4, VECTOR)
DEFINE_REDUCE(row_sum, PLUS)

void main() {
  const uint lane = gl_LocalInvocationID.x;
  for (uint first = gl_WorkGroupID.x * 4; first < rows; first += gl_NumWorkGroups.x * 4) {
    // Rows are numbered by sequence, key-value head, query, then head of the group.
    const uint row = first + gl_LocalInvocationID.y, heads = row / (s * group);
    const uint b = heads / kv_heads, r = row % (s * group), i = r / group, h = heads % kv_heads * group + r % group;
    float terms = 0;
    if (row < rows && lane * 4 < d) {
      const uint c = lane * 4, left = d - c;
      const vec4 g = load_dy(at(of_dy, b, i, h) + c, left), o = load_y(at(of_y, b, i, h) + c, left);
      terms = (g.x * o.x + g.y * o.y) + (g.z * o.z + g.w * o.w);
    }
    const float along = row_sum(terms);
    if (row < rows && lane == 0) {
      const float log_sum = logsumexp[logsumexp_first + b * logsumexp_batch + h * logsumexp_head + i];
      uint seen = visible_keys(lengths[lengths_first + b], starts[starts_first + b], i, causal != 0);
      if (log_sum == -INFINITY) seen = 0;
      row_of[row] = uvec4(floatBitsToUint(log_sum), floatBitsToUint(along), seen, 0);
    }
  }
}
