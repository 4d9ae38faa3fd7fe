// adamw_step.comp with four elements an invocation at a time, by vector loads and stores where all tensors are aligned.
#pragma shaders adamw_step_vectors_f16 F16; adamw_step_vectors_bf16 BF16
#include "storage.glsl"
#include "vectors.glsl"
layout(local_size_x = 256) in;

layout(constant_id = 0) const bool ALIGNED = false;  // every tensor starts at a multiple of four elements
layout(set = 0, binding = 0) buffer P { float p[]; };
layout(set = 0, binding = 0) buffer P4 { vec4 p4[]; };
layout(set = 0, binding = 1) buffer M { float m[]; };
layout(set = 0, binding = 1) buffer M4 { vec4 m4[]; };
layout(set = 0, binding = 2) buffer V { float v[]; };
layout(set = 0, binding = 2) buffer V4 { vec4 v4[]; };
layout(set = 0, binding = 3) readonly buffer G { float g[]; };
layout(set = 0, binding = 3) readonly buffer G4 { vec4 g4[]; };
layout(set = 0, binding = 4) writeonly buffer Rounded { STORED rounded[]; };
layout(set = 0, binding = 4) writeonly buffer Rounded4 { STORED4 rounded4[]; };
layout(push_constant) uniform Push {
  uint n, p_first, m_first, v_first, g_first;
  float keep1, take1, keep2, take2, decay, size, scale, eps;
  uint copies, rounded_first;
};
DEFINE_LOAD4(load_p, p, p4, ALIGNED)
DEFINE_LOAD4(load_m, m, m4, ALIGNED)
DEFINE_LOAD4(load_v, v, v4, ALIGNED)
DEFINE_LOAD4(load_g, g, g4, ALIGNED)
DEFINE_STORE4(store_p, p, p4, ALIGNED)
DEFINE_STORE4(store_m, m, m4, ALIGNED)
DEFINE_STORE4(store_v, v, v4, ALIGNED)
DEFINE_STORE4_STORED(store_rounded, rounded, rounded4, ALIGNED)

void main() {
  for (uint i = gl_GlobalInvocationID.x * 4; i < n; i += gl_NumWorkGroups.x * 1024) {
    const uint left = n - i;
    const vec4 gradients = load_g(g_first + i, left);
    const vec4 means = keep1 * load_m(m_first + i, left) + take1 * gradients;
    const vec4 mean_squares = keep2 * load_v(v_first + i, left) + take2 * gradients * gradients;
    const vec4 roots = sqrt(mean_squares) * scale + eps;
    const vec4 parameters = decay * load_p(p_first + i, left) - size * (means / roots);
    store_m(m_first + i, left, means);
    store_v(v_first + i, left, mean_squares);
    store_p(p_first + i, left, parameters);
    if (copies != 0) store_rounded(rounded_first + i, left, parameters);
  }
}
