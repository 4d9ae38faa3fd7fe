// Tensors and push constants of attention's shaders. A tensor of [batch, position, head, element] is four words: the
// offset of its first element in its buffer, and the strides of the first three axes; elements of a head are
// contiguous. q, k, v and y are stored in the variant's format (storage.glsl). A workgroup serves the queries of one
// sequence that read one key-value head: row r is query r / group of head g * group + r % group.
#include "storage.glsl"
#include "vectors.glsl"
#include "exponential.glsl"
#include "attention_rows.glsl"

layout(constant_id = 0) const bool VECTOR = false;  // every head of q, k, v and y starts at a multiple of 4 elements
layout(set = 0, binding = 0) readonly buffer Q { STORED q[]; };
layout(set = 0, binding = 0) readonly buffer Q4 { STORED4 q4[]; };
layout(set = 0, binding = 1) readonly buffer K { STORED k[]; };
layout(set = 0, binding = 1) readonly buffer K4 { STORED4 k4[]; };
layout(set = 0, binding = 2) readonly buffer V { STORED v[]; };
layout(set = 0, binding = 2) readonly buffer V4 { STORED4 v4[]; };
layout(set = 0, binding = 3) readonly buffer Lengths { int lengths[]; };
layout(set = 0, binding = 4) readonly buffer Starts { int starts[]; };
layout(set = 0, binding = 5) writeonly buffer Y { STORED y[]; };
layout(set = 0, binding = 5) writeonly buffer Y4 { STORED4 y4[]; };
layout(set = 0, binding = 6) writeonly buffer Logsumexp { float logsumexp[]; };
layout(push_constant) uniform Push {
  uvec4 of_q, of_k, of_v, of_y;
  uint logsumexp_first, logsumexp_batch, logsumexp_head, lengths_first, starts_first;
  uint s, t, group, d, causal;
  float scale;
};
DEFINE_LOAD4_STORED(load_q, q, q4, VECTOR)
DEFINE_LOAD4_STORED(load_k, k, k4, VECTOR)
DEFINE_LOAD4_STORED(load_v, v, v4, VECTOR)
DEFINE_STORE4_STORED(store_y, y, y4, VECTOR)

// Returns the number of leading keys that query i of sequence b sees.
uint keys_seen(uint b, uint i) {
  return visible_keys(lengths[lengths_first + b], starts[starts_first + b], i, causal != 0);
}

void store_logsumexp(uint b, uint h, uint i, float value) {
  logsumexp[logsumexp_first + b * logsumexp_batch + h * logsumexp_head + i] = value;
}
