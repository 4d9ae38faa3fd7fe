// Rows as attention_backward_rows.comp describes them, and ds of a query-key pair, shared by the shaders of attention's
// gradients. Tensors of heads are stored in the variant's format (storage.glsl).
#extension GL_EXT_control_flow_attributes : require
#include "storage.glsl"
#include "vectors.glsl"
#include "exponential.glsl"
#include "attention_rows.glsl"

layout(constant_id = 0) const bool VECTOR = false;  // every head of every tensor starts at a multiple of 4 elements
layout(set = 0, binding = 0) readonly buffer Q { STORED q[]; };
layout(set = 0, binding = 0) readonly buffer Q4 { STORED4 q4[]; };
layout(set = 0, binding = 1) readonly buffer K { STORED k[]; };
layout(set = 0, binding = 1) readonly buffer K4 { STORED4 k4[]; };
layout(set = 0, binding = 2) readonly buffer V { STORED v[]; };
layout(set = 0, binding = 2) readonly buffer V4 { STORED4 v4[]; };
layout(set = 0, binding = 3) readonly buffer Dy { STORED dy[]; };
layout(set = 0, binding = 3) readonly buffer Dy4 { STORED4 dy4[]; };
layout(set = 0, binding = 4) readonly buffer Rows { uvec4 row_of[]; };
DEFINE_LOAD4_STORED(load_q, q, q4, VECTOR)
DEFINE_LOAD4_STORED(load_k, k, k4, VECTOR)
DEFINE_LOAD4_STORED(load_v, v, v4, VECTOR)
DEFINE_LOAD4_STORED(load_dy, dy, dy4, VECTOR)

// Scalars of 64 rows; rows that do not exist see no key.
shared vec4 logsumexp_of[16], along_of[16];
shared uvec4 seen_of[16];

void load_rows(uint first, uint count) {
  const uint index = gl_LocalInvocationIndex;
  barrier();  // the previous rows have been used
  if (index < 64) {
    const uvec4 row = index < count ? row_of[first + index] : uvec4(0);
    logsumexp_of[index / 4][index % 4] = uintBitsToFloat(row.x);
    along_of[index / 4][index % 4] = uintBitsToFloat(row.y);
    seen_of[index / 4][index % 4] = row.z;
  }
  barrier();
}

// Returns the smallest and the largest number of keys that one of the rows sees.
uvec2 seen_range() {
  uvec4 least = seen_of[0], most = least;
  [[unroll]] for (uint n = 1; n < 16; ++n) {
    least = min(least, seen_of[n]);
    most = max(most, seen_of[n]);
  }
  return uvec2(min(min(least.x, least.y), min(least.z, least.w)), max(max(most.x, most.y), max(most.z, most.w)));
}

// Returns p and ds of a visible query-key pair.
vec2 gradient(float score, float dp, float log_sum, float along) {
  const float p = exp_of(score - log_sum);
  return vec2(p, p * (dp - along));
}
