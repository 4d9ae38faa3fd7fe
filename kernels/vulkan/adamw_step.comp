// m' = keep1 m + take1 g, v' = keep2 v + take2 g^2, p' = decay p - size m' / (scale sqrt(v') + eps), in place; dense
// f32 vectors of n elements that share no memory. One element an invocation at a time. With F16 or BF16, and copies = 1,
// the new p in that format, too, rounded once.
#pragma shaders adamw_step; adamw_step_f16 F16; adamw_step_bf16 BF16
#include "storage.glsl"
layout(local_size_x = 256) in;

layout(set = 0, binding = 0) buffer P { float p[]; };
layout(set = 0, binding = 1) buffer M { float m[]; };
layout(set = 0, binding = 2) buffer V { float v[]; };
layout(set = 0, binding = 3) readonly buffer G { float g[]; };
#if defined(F16) || defined(BF16)
layout(set = 0, binding = 4) writeonly buffer Rounded { STORED rounded[]; };
#endif
layout(push_constant) uniform Push {
  uint n, p_first, m_first, v_first, g_first;
  float keep1, take1, keep2, take2, decay, size, scale, eps;
#if defined(F16) || defined(BF16)
  uint copies, rounded_first;
#endif
};

void main() {
  for (uint i = gl_GlobalInvocationID.x; i < n; i += gl_NumWorkGroups.x * 256) {
    const float gradient = g[g_first + i];
    const float mean = keep1 * m[m_first + i] + take1 * gradient;
    const float squares = keep2 * v[v_first + i] + take2 * gradient * gradient;
    m[m_first + i] = mean;
    v[v_first + i] = squares;
    const float root = sqrt(squares) * scale + eps;
    p[p_first + i] = decay * p[p_first + i] - size * (mean / root);
#if defined(F16) || defined(BF16)
    if (copies != 0) rounded[rounded_first + i] = STORE(p[p_first + i]);
#endif
  }
}
