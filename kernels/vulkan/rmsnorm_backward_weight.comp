// dweight[j] = sum_i dy[i,j] * x[i,j] * rrms[i]; tensors as in rmsnorm_backward.comp. A workgroup takes 64 columns,
// four invocations each: invocation g sums rows g, g + 4, .., and the four sums are added in order.
#pragma shaders rmsnorm_backward_weight; rmsnorm_backward_weight_f16 F16; rmsnorm_backward_weight_bf16 BF16
#extension GL_GOOGLE_include_directive : require
#include "rows.glsl"

layout(set = 0, binding = 0) readonly buffer X { STORED x[]; };
layout(set = 0, binding = 1) readonly buffer Rrms { float rrms[]; };
layout(set = 0, binding = 2) readonly buffer Dy { STORED dy[]; };
layout(set = 0, binding = 3) writeonly buffer Dweight { float dweight[]; };
layout(push_constant) uniform Push {
  uint rows, n;
  uint x_first, x_ld, rrms_first, dy_first, dy_ld, dweight_first;
};

void main() {
  const uint lane = gl_LocalInvocationID.x, slot = gl_LocalInvocationID.y;
  for (uint j0 = gl_WorkGroupID.x * 64; j0 < n; j0 += gl_NumWorkGroups.x * 64) {
    const uint j = j0 + lane;
    float sum = 0;
    if (j < n)
      for (uint i = slot; i < rows; i += 4)
        sum = fma(LOADED(dy[dy_first + i * dy_ld + j]), LOADED(x[x_first + i * x_ld + j]) * rrms[rrms_first + i], sum);
    partial[slot][lane] = sum;
    barrier();
    if (slot == 0 && j < n)
      dweight[dweight_first + j] = (partial[0][lane] + partial[1][lane]) + (partial[2][lane] + partial[3][lane]);
    barrier();
  }
}
