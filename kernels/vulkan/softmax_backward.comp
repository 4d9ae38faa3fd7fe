// dx[i,j] = y[i,j] * (dy[i,j] - sum_k y[i,k] * dy[i,k]); y, dy, dx [rows,n] with rows of unit stride. 64 invocations a
// row, in two passes.
#pragma shaders softmax_backward_rows; softmax_backward_rows_f16 F16; softmax_backward_rows_bf16 BF16
#extension GL_GOOGLE_include_directive : require
#include "rows.glsl"

layout(constant_id = 0) const bool VECTOR_Y = false;
layout(constant_id = 1) const bool VECTOR_DY = false;
layout(constant_id = 2) const bool VECTOR_DX = false;
layout(set = 0, binding = 0) readonly buffer Y { STORED y[]; };
layout(set = 0, binding = 0) readonly buffer Y4 { STORED4 y4[]; };
layout(set = 0, binding = 1) readonly buffer Dy { STORED dy[]; };
layout(set = 0, binding = 1) readonly buffer Dy4 { STORED4 dy4[]; };
layout(set = 0, binding = 2) writeonly buffer Dx { STORED dx[]; };
layout(set = 0, binding = 2) writeonly buffer Dx4 { STORED4 dx4[]; };
layout(push_constant) uniform Push {
  uint rows, n;
  uint y_first, y_ld, dy_first, dy_ld, dx_first, dx_ld;
};
DEFINE_LOAD4_STORED(load_y, y, y4, VECTOR_Y)
DEFINE_LOAD4_STORED(load_dy, dy, dy4, VECTOR_DY)
DEFINE_STORE4_STORED(store_dx, dx, dx4, VECTOR_DX)
DEFINE_REDUCE(row_sum, PLUS)

void main() {
  const uint lane = gl_LocalInvocationID.x;
  for (uint row0 = gl_WorkGroupID.x * 4; row0 < rows; row0 += gl_NumWorkGroups.x * 4) {
    const uint row = row0 + gl_LocalInvocationID.y;
    vec4 terms = vec4(0);
    if (row < rows)
      for (uint j = lane * 4; j < n; j += 256)
        terms = fma(load_y(y_first + row * y_ld + j, n - j), load_dy(dy_first + row * dy_ld + j, n - j), terms);
    const float sum = row_sum(sum4(terms));
    if (row < rows)
      for (uint j = lane * 4; j < n; j += 256) {
        const vec4 p = load_y(y_first + row * y_ld + j, n - j), g = load_dy(dy_first + row * dy_ld + j, n - j);
        store_dx(dx_first + row * dx_ld + j, n - j, p * (g - sum));
      }
  }
}
