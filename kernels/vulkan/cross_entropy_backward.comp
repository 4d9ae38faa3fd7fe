// dlogits[i,j] = (exp(logits[i,j] - logsumexp[i]) - [j = y]) (weights[y] (dloss[i] + dtotal / normalizer)), y =
// targets[i]; logits and dlogits [rows, classes] with rows of unit stride, other tensors dense. Four elements an
// invocation.
#pragma shaders cross_entropy_backward; cross_entropy_backward_f16 F16; cross_entropy_backward_bf16 BF16
#include "storage.glsl"
layout(local_size_x = 256) in;
#include "logit_gradient.glsl"

// True if every row starts at a multiple of four elements.
layout(constant_id = 0) const bool VECTOR_X = false;
layout(constant_id = 1) const bool VECTOR_DX = false;
layout(set = 0, binding = 0) readonly buffer X { STORED x[]; };
layout(set = 0, binding = 0) readonly buffer X4 { STORED4 x4[]; };
layout(set = 0, binding = 1) readonly buffer T { int targets[]; };
layout(set = 0, binding = 2) readonly buffer W { float weights[]; };
layout(set = 0, binding = 3) readonly buffer S { float logsumexp[]; };
layout(set = 0, binding = 4) readonly buffer N { float normalizer[]; };
layout(set = 0, binding = 5) readonly buffer DL { float dloss[]; };
layout(set = 0, binding = 6) readonly buffer DT { float dtotal[]; };
layout(set = 0, binding = 7) writeonly buffer DX { STORED dx[]; };
layout(set = 0, binding = 7) writeonly buffer DX4 { STORED4 dx4[]; };
layout(push_constant) uniform Push {
  uint rows, classes;
  uint x_first, x_ld, dx_first, dx_ld;
  uint targets_first, weights_first, logsumexp_first, normalizer_first, dloss_first, dtotal_first;
};

void main() {
  const uint j = gl_GlobalInvocationID.x * 4;
  if (j >= classes) return;
  const float share = dtotal[dtotal_first] / normalizer[normalizer_first];
  for (uint row = gl_WorkGroupID.y; row < rows; row += gl_NumWorkGroups.y) {
    const int y = targets[targets_first + row];
    const float scale = weights[weights_first + y] * (dloss[dloss_first + row] + share);
    const float shift = logsumexp[logsumexp_first + row];
    const uint from = x_first + row * x_ld + j, to = dx_first + row * dx_ld + j;
    if (j + 3 < classes) {
      const vec4 v = VECTOR_X ? LOADED4(x4[from >> 2])
                              : vec4(LOADED(x[from]), LOADED(x[from + 1]), LOADED(x[from + 2]), LOADED(x[from + 3]));
      const vec4 g = vec4(logit_gradient(v.x, shift, y == j, scale), logit_gradient(v.y, shift, y == j + 1, scale),
                          logit_gradient(v.z, shift, y == j + 2, scale), logit_gradient(v.w, shift, y == j + 3, scale));
      if (VECTOR_DX) {
        dx4[to >> 2] = STORE4(g);
      } else {
        dx[to] = STORE(g.x);
        dx[to + 1] = STORE(g.y);
        dx[to + 2] = STORE(g.z);
        dx[to + 3] = STORE(g.w);
      }
    } else {
      for (uint k = 0; j + k < classes; ++k) dx[to + k] = STORE(logit_gradient(LOADED(x[from + k]), shift, y == j + k, scale));
    }
  }
}
