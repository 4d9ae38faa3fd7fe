// rrms[i] = 1 / sqrt(sum_j x[i,j]^2 / n + eps), y[i,j] = x[i,j] * rrms[i] * weight[j]; x, y [rows,n] with rows of unit
// stride, weight [n], rrms [rows]. 64 invocations a row: each sums every 64th group of four squares, a tree in shared
// memory adds them, and a second pass over the row, still in the cache, scales it.
#pragma shaders rmsnorm_rows; rmsnorm_rows_f16 F16; rmsnorm_rows_bf16 BF16
#extension GL_GOOGLE_include_directive : require
#include "rows.glsl"

layout(constant_id = 0) const bool VECTOR_X = false;
layout(constant_id = 1) const bool VECTOR_WEIGHT = false;
layout(constant_id = 2) const bool VECTOR_Y = false;
layout(set = 0, binding = 0) readonly buffer X { STORED x[]; };
layout(set = 0, binding = 0) readonly buffer X4 { STORED4 x4[]; };
layout(set = 0, binding = 1) readonly buffer Weight { float weight[]; };
layout(set = 0, binding = 1) readonly buffer Weight4 { vec4 weight4[]; };
layout(set = 0, binding = 2) writeonly buffer Y { STORED y[]; };
layout(set = 0, binding = 2) writeonly buffer Y4 { STORED4 y4[]; };
layout(set = 0, binding = 3) writeonly buffer Rrms { float rrms[]; };
layout(push_constant) uniform Push {
  uint rows, n;
  uint x_first, x_ld, weight_first, y_first, y_ld, rrms_first;
  float eps;
};
DEFINE_LOAD4_STORED(load_x, x, x4, VECTOR_X)
DEFINE_LOAD4(load_weight, weight, weight4, VECTOR_WEIGHT)
DEFINE_STORE4_STORED(store_y, y, y4, VECTOR_Y)
DEFINE_REDUCE(row_sum, PLUS)

void main() {
  const uint lane = gl_LocalInvocationID.x;
  for (uint row0 = gl_WorkGroupID.x * 4; row0 < rows; row0 += gl_NumWorkGroups.x * 4) {
    const uint row = row0 + gl_LocalInvocationID.y;
    vec4 squares = vec4(0);
    if (row < rows)
      for (uint j = lane * 4; j < n; j += 256) {
        const vec4 v = load_x(x_first + row * x_ld + j, n - j);
        squares = fma(v, v, squares);
      }
    const float sum = row_sum(sum4(squares));
    if (row < rows) {
      const float scale = inversesqrt(sum / float(n) + eps);
      if (lane == 0) rrms[rrms_first + row] = scale;
      for (uint j = lane * 4; j < n; j += 256)
        store_y(y_first + row * y_ld + j, n - j,
                load_x(x_first + row * x_ld + j, n - j) * scale * load_weight(weight_first + j, n - j));
    }
  }
}
