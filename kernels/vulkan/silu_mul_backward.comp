// dgate = dy * up * (s + gate * s * (1 - s)), dup = dy * gate * s, s = sigmoid(gate); all [rows,n] with rows of unit
// stride. An invocation takes every 256th group of four elements of a row.
#pragma shaders silu_mul_backward_rows; silu_mul_backward_rows_f16 F16; silu_mul_backward_rows_bf16 BF16
#extension GL_GOOGLE_include_directive : require
#include "silu.glsl"

layout(constant_id = 0) const bool VECTOR_GATE = false;
layout(constant_id = 1) const bool VECTOR_UP = false;
layout(constant_id = 2) const bool VECTOR_DY = false;
layout(constant_id = 3) const bool VECTOR_DGATE = false;
layout(constant_id = 4) const bool VECTOR_DUP = false;
layout(set = 0, binding = 0) readonly buffer Gate { STORED gate[]; };
layout(set = 0, binding = 0) readonly buffer Gate4 { STORED4 gate4[]; };
layout(set = 0, binding = 1) readonly buffer Up { STORED up[]; };
layout(set = 0, binding = 1) readonly buffer Up4 { STORED4 up4[]; };
layout(set = 0, binding = 2) readonly buffer Dy { STORED dy[]; };
layout(set = 0, binding = 2) readonly buffer Dy4 { STORED4 dy4[]; };
layout(set = 0, binding = 3) writeonly buffer Dgate { STORED dgate[]; };
layout(set = 0, binding = 3) writeonly buffer Dgate4 { STORED4 dgate4[]; };
layout(set = 0, binding = 4) writeonly buffer Dup { STORED dup[]; };
layout(set = 0, binding = 4) writeonly buffer Dup4 { STORED4 dup4[]; };
layout(push_constant) uniform Push {
  uint rows, n;
  uint gate_first, gate_ld, up_first, up_ld, dy_first, dy_ld, dgate_first, dgate_ld, dup_first, dup_ld;
};
DEFINE_LOAD4_STORED(load_gate, gate, gate4, VECTOR_GATE)
DEFINE_LOAD4_STORED(load_up, up, up4, VECTOR_UP)
DEFINE_LOAD4_STORED(load_dy, dy, dy4, VECTOR_DY)
DEFINE_STORE4_STORED(store_dgate, dgate, dgate4, VECTOR_DGATE)
DEFINE_STORE4_STORED(store_dup, dup, dup4, VECTOR_DUP)

void main() {
  for (uint row = gl_WorkGroupID.x * 4 + gl_LocalInvocationID.y; row < rows; row += gl_NumWorkGroups.x * 4)
    for (uint j = gl_LocalInvocationID.x * 4; j < n; j += 256) {
      const uint left = n - j;
      const vec4 g = load_gate(gate_first + row * gate_ld + j, left), d = load_dy(dy_first + row * dy_ld + j, left);
      const vec4 u = load_up(up_first + row * up_ld + j, left);
      vec4 s, rest;
      sigmoid4(g, s, rest);
      const vec4 silu = g * s;
      store_dgate(dgate_first + row * dgate_ld + j, left, d * u * fma(silu, rest, s));
      store_dup(dup_first + row * dup_ld + j, left, d * silu);
    }
}
