// y[b,j] = sum_(i < lengths[b]) x[b,i,j] / lengths[b]; x [b,s,h] and y [b,h] f32 with rows of unit stride, lengths [b].
#pragma shaders mean_pool_stripes
#include "float_controls.glsl"

layout(set = 0, binding = 0) readonly buffer X { float x[]; };
layout(set = 0, binding = 1) readonly buffer Lengths { int lengths[]; };
layout(set = 0, binding = 2) writeonly buffer Y { float y[]; };
layout(push_constant) uniform Push {
  uint b, s, h;
  uint x_first, x_batch, x_ld;
  uint lengths_first;
  uint y_first, y_ld;
};

float load(uint batch, uint i, uint j) { return x[x_first + batch * x_batch + i * x_ld + j]; }

void store(uint batch, uint j, float sum) { y[y_first + batch * y_ld + j] = sum / lengths[lengths_first + batch]; }

#include "column_sum.glsl"

void main() {
  for (uint batch = gl_WorkGroupID.y; batch < b; batch += gl_NumWorkGroups.y)
    sum_columns(batch, lengths[lengths_first + batch], h);
}
