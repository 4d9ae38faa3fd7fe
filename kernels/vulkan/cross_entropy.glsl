// loss[i] = weights[y] ((m - logits[i,y]) + log sum_j exp(logits[i,j] - m)), m the row's maximum and y = targets[i];
// logsumexp[i] = m + the logarithm. logits [rows, classes] with rows of unit stride, other tensors dense. A
// workgroup takes a row: every 256th group of four elements an invocation, with aligned and misaligned rows alike. With
// GRADIENT, a third pass over the row writes weights[y] (exp(logits[i,j] - logsumexp[i]) - [j = y]) / normalizer[0].
#include "storage.glsl"
layout(local_size_x = 256) in;
#include "reduce.glsl"
#ifdef GRADIENT
#include "logit_gradient.glsl"
#include "vectors.glsl"
#endif

// True if every row starts at a multiple of four elements.
layout(constant_id = 0) const bool VECTOR = false;
#ifdef GRADIENT
layout(constant_id = 1) const bool VECTOR_G = false;
#endif
layout(set = 0, binding = 0) readonly buffer X { STORED x[]; };
layout(set = 0, binding = 0) readonly buffer X4 { STORED4 x4[]; };
layout(set = 0, binding = 1) readonly buffer T { int targets[]; };
layout(set = 0, binding = 2) readonly buffer W { float weights[]; };
layout(set = 0, binding = 3) writeonly buffer L { float loss[]; };
layout(set = 0, binding = 4) writeonly buffer S { float logsumexp[]; };
#ifdef GRADIENT
layout(set = 0, binding = 5) readonly buffer N { float normalizer[]; };
layout(set = 0, binding = 6) writeonly buffer G { STORED gradient[]; };
layout(set = 0, binding = 6) writeonly buffer G4 { STORED4 gradient4[]; };
DEFINE_STORE4_STORED(store_gradient, gradient, gradient4, VECTOR_G)
#endif
layout(push_constant) uniform Push {
  uint rows, classes;
  uint x_first, x_ld, targets_first, weights_first, loss_first, logsumexp_first;
#ifdef GRADIENT
  uint normalizer_first, gradient_first, gradient_ld;
#endif
};

// Loads elements j .. j + 3 of a row with more than j elements; -inf past its end.
vec4 load(uint row, uint j) {
  const uint at = x_first + row * x_ld + j;
  if (j + 3 < classes) {
    if (VECTOR) return LOADED4(x4[at >> 2]);
    return vec4(LOADED(x[at]), LOADED(x[at + 1]), LOADED(x[at + 2]), LOADED(x[at + 3]));
  }
  vec4 v = vec4(LOADED(x[at]), -INFINITY, -INFINITY, -INFINITY);
  if (j + 1 < classes) v.y = LOADED(x[at + 1]);
  if (j + 2 < classes) v.z = LOADED(x[at + 2]);
  return v;
}

void main() {
  const uint lane = gl_LocalInvocationID.x;
  // All invocations of a workgroup run the same number of iterations: none may miss a barrier.
  for (uint row = gl_WorkGroupID.x; row < rows; row += gl_NumWorkGroups.x) {
    float top = -INFINITY;
    for (uint j = lane * 4; j < classes; j += 1024) {
      const vec4 v = load(row, j);
      top = max(max(top, max(v.x, v.y)), max(v.z, v.w));
    }
    const float m = workgroup_max(top);
    float sum = 0;
    for (uint j = lane * 4; j < classes; j += 1024) {
      const vec4 v = load(row, j);
      sum += exp_of(v.x - m);
      // Skip elements past the end: if m is -inf, their terms are not 0.
      sum += j + 1 < classes ? exp_of(v.y - m) : 0;
      sum += j + 2 < classes ? exp_of(v.z - m) : 0;
      sum += j + 3 < classes ? exp_of(v.w - m) : 0;
    }
    const float total = workgroup_sum(sum);
    const float log_sum = isnan(total) ? total : log(total);
    const int y = targets[targets_first + row];
    const float weight = weights[weights_first + y];
    if (lane == 0) {
      logsumexp[logsumexp_first + row] = m + log_sum;
      loss[loss_first + row] = weight * ((m - LOADED(x[x_first + row * x_ld + y])) + log_sum);
    }
#ifdef GRADIENT
    const float shift = m + log_sum, scale = weight / normalizer[normalizer_first];
    for (uint j = lane * 4; j < classes; j += 1024) {
      const vec4 v = load(row, j);
      store_gradient(gradient_first + row * gradient_ld + j, classes - j,
                     vec4(logit_gradient(v.x, shift, y == j, scale), logit_gradient(v.y, shift, y == j + 1, scale),
                          logit_gradient(v.z, shift, y == j + 2, scale), logit_gradient(v.w, shift, y == j + 3, scale)));
    }
#endif
  }
}
