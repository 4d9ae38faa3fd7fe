// y[i] = sum_p a[i,p] * x[p], one row per invocation, terms in order; tensors as in gemv.comp.
#pragma shaders gemv_naive; gemv_naive_f16 F16; gemv_naive_bf16 BF16
#include "storage.glsl"
layout(local_size_x = 64) in;

layout(set = 0, binding = 0) readonly buffer A { STORED a[]; };
layout(set = 0, binding = 1) readonly buffer X { STORED x[]; };
layout(set = 0, binding = 2) writeonly buffer Y { STORED y[]; };
layout(push_constant) uniform Push {
  uint m, k;
  uint a_first, a_ld;
  uint x_first, x_stride;
  uint y_first, y_stride;
};

void main() {
  for (uint row = gl_GlobalInvocationID.x; row < m; row += gl_NumWorkGroups.x * 64) {
    float sum = 0;
    for (uint p = 0; p < k; ++p)
      sum = fma(LOADED(a[a_first + row * a_ld + p]), LOADED(x[x_first + p * x_stride]), sum);
    y[y_first + row * y_stride] = STORE(sum);
  }
}
