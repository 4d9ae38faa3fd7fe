// y[i,j] = gate[i,j] * sigmoid(gate[i,j]) * up[i,j]; gate, up, y [rows,n] with rows of unit stride. An invocation takes
// every 256th group of four elements of a row.
#pragma shaders silu_mul_rows; silu_mul_rows_f16 F16; silu_mul_rows_bf16 BF16
#extension GL_GOOGLE_include_directive : require
#include "silu.glsl"

layout(constant_id = 0) const bool VECTOR_GATE = false;
layout(constant_id = 1) const bool VECTOR_UP = false;
layout(constant_id = 2) const bool VECTOR_Y = false;
layout(set = 0, binding = 0) readonly buffer Gate { STORED gate[]; };
layout(set = 0, binding = 0) readonly buffer Gate4 { STORED4 gate4[]; };
layout(set = 0, binding = 1) readonly buffer Up { STORED up[]; };
layout(set = 0, binding = 1) readonly buffer Up4 { STORED4 up4[]; };
layout(set = 0, binding = 2) writeonly buffer Y { STORED y[]; };
layout(set = 0, binding = 2) writeonly buffer Y4 { STORED4 y4[]; };
layout(push_constant) uniform Push {
  uint rows, n;
  uint gate_first, gate_ld, up_first, up_ld, y_first, y_ld;
};
DEFINE_LOAD4_STORED(load_gate, gate, gate4, VECTOR_GATE)
DEFINE_LOAD4_STORED(load_up, up, up4, VECTOR_UP)
DEFINE_STORE4_STORED(store_y, y, y4, VECTOR_Y)

void main() {
  for (uint row = gl_WorkGroupID.x * 4 + gl_LocalInvocationID.y; row < rows; row += gl_NumWorkGroups.x * 4)
    for (uint j = gl_LocalInvocationID.x * 4; j < n; j += 256) {
      const vec4 g = load_gate(gate_first + row * gate_ld + j, n - j), u = load_up(up_first + row * up_ld + j, n - j);
      vec4 s, rest;
      sigmoid4(g, s, rest);
      store_y(y_first + row * y_ld + j, n - j, g * s * u);
    }
}
