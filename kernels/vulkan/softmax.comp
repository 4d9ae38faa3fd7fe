// y[i,j] = exp(x[i,j] - m) / sum_k exp(x[i,k] - m), m = max_k x[i,k]; zeros if all of a row is -inf. x, y [rows,n] f32
// with rows of unit stride. 64 invocations a row: the maximum, the sum, the quotients, in three passes over a row; the
// later two hit the cache.
#pragma shaders softmax_rows; softmax_rows_f16 F16; softmax_rows_bf16 BF16
#extension GL_GOOGLE_include_directive : require
#include "rows.glsl"

layout(constant_id = 0) const bool VECTOR_X = false;
layout(constant_id = 1) const bool VECTOR_Y = false;
layout(set = 0, binding = 0) readonly buffer X { STORED x[]; };
layout(set = 0, binding = 0) readonly buffer X4 { STORED4 x4[]; };
layout(set = 0, binding = 1) writeonly buffer Y { STORED y[]; };
layout(set = 0, binding = 1) writeonly buffer Y4 { STORED4 y4[]; };
layout(push_constant) uniform Push {
  uint rows, n;
  uint x_first, x_ld, y_first, y_ld;
};
DEFINE_LOAD4_STORED(load_x, x, x4, VECTOR_X)
DEFINE_STORE4_STORED(store_y, y, y4, VECTOR_Y)
DEFINE_REDUCE(row_sum, PLUS)
DEFINE_REDUCE(row_max, LARGER)

#define MASKED uintBitsToFloat(0xff800000u)  // -inf

// Returns exp(v - shift). exp(NaN) is driver-defined, so NaN bypasses exp.
float power(float v, float shift) {
  const float below = v - shift;
  return below != below ? below : exp(below);
}

void main() {
  const uint lane = gl_LocalInvocationID.x;
  for (uint row0 = gl_WorkGroupID.x * 4; row0 < rows; row0 += gl_NumWorkGroups.x * 4) {
    const uint row = row0 + gl_LocalInvocationID.y, at = x_first + row * x_ld;
    float own = MASKED;
    if (row < rows)
      for (uint j = lane * 4; j < n; j += 256) {
        const uint left = n - j;
        const vec4 v = load_x(at + j, left);
        own = LARGER(own, v.x);
        if (left > 1) own = LARGER(own, v.y);
        if (left > 2) own = LARGER(own, v.z);
        if (left > 3) own = LARGER(own, v.w);
      }
    const float largest = row_max(own);
    const float shift = largest == MASKED ? 0 : largest;
    float terms = 0;
    if (row < rows)
      for (uint j = lane * 4; j < n; j += 256) {
        const uint left = n - j;
        const vec4 v = load_x(at + j, left);
        terms += power(v.x, shift);
        if (left > 1) terms += power(v.y, shift);
        if (left > 2) terms += power(v.z, shift);
        if (left > 3) terms += power(v.w, shift);
      }
    const float sum = row_sum(terms);
    if (row < rows)
      for (uint j = lane * 4; j < n; j += 256) {
        const vec4 v = load_x(at + j, n - j);
        const vec4 e = vec4(power(v.x, shift), power(v.y, shift), power(v.z, shift), power(v.w, shift));
        store_y(y_first + row * y_ld + j, n - j, sum == 0 ? vec4(0) : e / sum);
      }
  }
}
