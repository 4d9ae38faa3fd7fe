// dx[i,j] = dy[i,j] and dbias[j] = sum_i dy[i,j]; dy, dx [m,n] with rows of unit stride, dbias [n].
#pragma shaders bias_add_backward_stripes; bias_add_backward_stripes_f16 F16; bias_add_backward_stripes_bf16 BF16
#include "storage.glsl"

layout(set = 0, binding = 0) readonly buffer Dy { STORED dy[]; };
layout(set = 0, binding = 1) writeonly buffer Dx { STORED dx[]; };
layout(set = 0, binding = 2) writeonly buffer Dbias { float dbias[]; };
layout(push_constant) uniform Push {
  uint m, n;
  uint dy_first, dy_ld;
  uint dx_first, dx_ld;
  uint dbias_first;
};

float load(uint batch, uint i, uint j) {
  const float x = LOADED(dy[dy_first + i * dy_ld + j]);
  dx[dx_first + i * dx_ld + j] = STORE(x);
  return x;
}

void store(uint batch, uint j, float sum) { dbias[dbias_first + j] = sum; }

#include "column_sum.glsl"

void main() { sum_columns(0, m, n); }
