// Gradient of rmsnorm with respect to x, with a = dy * weight and xn = x * rrms: dx[i,j] = rrms[i] * (a[i,j] - xn[i,j]
// * sum_k a[i,k] * xn[i,k] / n); x, dy, dx [rows,n] with rows of unit stride, weight [n], rrms [rows]. 64 invocations a
// row. With OWN_RRMS, rrms is written: both sums of a row are taken in one pass, and that of a * x is multiplied by
// rrms afterwards.
#include "rows.glsl"

layout(constant_id = 0) const bool VECTOR_X = false;
layout(constant_id = 1) const bool VECTOR_WEIGHT = false;
layout(constant_id = 2) const bool VECTOR_DY = false;
layout(constant_id = 3) const bool VECTOR_DX = false;
layout(set = 0, binding = 0) readonly buffer X { STORED x[]; };
layout(set = 0, binding = 0) readonly buffer X4 { STORED4 x4[]; };
layout(set = 0, binding = 1) readonly buffer Weight { float weight[]; };
layout(set = 0, binding = 1) readonly buffer Weight4 { vec4 weight4[]; };
#ifdef OWN_RRMS
layout(set = 0, binding = 2) writeonly buffer Rrms { float rrms[]; };
#else
layout(set = 0, binding = 2) readonly buffer Rrms { float rrms[]; };
#endif
layout(set = 0, binding = 3) readonly buffer Dy { STORED dy[]; };
layout(set = 0, binding = 3) readonly buffer Dy4 { STORED4 dy4[]; };
layout(set = 0, binding = 4) writeonly buffer Dx { STORED dx[]; };
layout(set = 0, binding = 4) writeonly buffer Dx4 { STORED4 dx4[]; };
layout(push_constant) uniform Push {
  uint rows, n;
  uint x_first, x_ld, weight_first, rrms_first, dy_first, dy_ld, dx_first, dx_ld;
#ifdef OWN_RRMS
  float eps;
#endif
};
DEFINE_LOAD4_STORED(load_x, x, x4, VECTOR_X)
DEFINE_LOAD4(load_weight, weight, weight4, VECTOR_WEIGHT)
DEFINE_LOAD4_STORED(load_dy, dy, dy4, VECTOR_DY)
DEFINE_STORE4_STORED(store_dx, dx, dx4, VECTOR_DX)
DEFINE_REDUCE(row_sum, PLUS)

void main() {
  const uint lane = gl_LocalInvocationID.x;
  for (uint row0 = gl_WorkGroupID.x * 4; row0 < rows; row0 += gl_NumWorkGroups.x * 4) {
    const uint row = row0 + gl_LocalInvocationID.y;
#ifdef OWN_RRMS
    float scale = 1;
#else
    const float scale = row < rows ? rrms[rrms_first + row] : 0;
#endif
    vec4 terms = vec4(0), squares = vec4(0);
    if (row < rows)
      for (uint j = lane * 4; j < n; j += 256) {
        const uint left = n - j;
        const vec4 a = load_dy(dy_first + row * dy_ld + j, left) * load_weight(weight_first + j, left);
        const vec4 v = load_x(x_first + row * x_ld + j, left);
        terms = fma(a, v * scale, terms);
#ifdef OWN_RRMS
        squares = fma(v, v, squares);
#endif
      }
    float along = row_sum(sum4(terms));
#ifdef OWN_RRMS
    scale = inversesqrt(row_sum(sum4(squares)) / float(n) + eps);
    if (row < rows && lane == 0) rrms[rrms_first + row] = scale;
    along *= scale;
#endif
    const float mean = along / float(n);
    if (row < rows)
      for (uint j = lane * 4; j < n; j += 256) {
        const uint left = n - j;
        const vec4 a = load_dy(dy_first + row * dy_ld + j, left) * load_weight(weight_first + j, left);
        const vec4 xn = load_x(x_first + row * x_ld + j, left) * scale;
        store_dx(dx_first + row * dx_ld + j, left, scale * (a - xn * mean));
      }
  }
}
