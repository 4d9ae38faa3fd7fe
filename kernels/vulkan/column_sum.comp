// y[j] = sum_i x[i,j]; x [m,n] f32 with rows of unit stride, y [n].
#pragma shaders column_sum_stripes
#include "float_controls.glsl"

layout(set = 0, binding = 0) readonly buffer X { float x[]; };
layout(set = 0, binding = 1) writeonly buffer Y { float y[]; };
layout(push_constant) uniform Push {
  uint m, n;
  uint x_first, x_ld;
  uint y_first;
};

float load(uint batch, uint i, uint j) { return x[x_first + i * x_ld + j]; }

void store(uint batch, uint j, float sum) { y[y_first + j] = sum; }

#include "column_sum.glsl"

void main() { sum_columns(0, m, n); }
