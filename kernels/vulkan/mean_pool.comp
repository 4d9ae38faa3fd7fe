// y[b,j] = sum_(i < lengths[b]) x[b,i,j] / lengths[b]; x [b,s,h] and y [b,h] with rows of unit stride, lengths [b].
#pragma shaders mean_pool_stripes; mean_pool_stripes_f16 F16; mean_pool_stripes_bf16 BF16
#include "storage.glsl"

layout(set = 0, binding = 0) readonly buffer X { STORED x[]; };
layout(set = 0, binding = 1) readonly buffer Lengths { int lengths[]; };
layout(set = 0, binding = 2) writeonly buffer Y { STORED y[]; };
layout(push_constant) uniform Push {
  uint b, s, h;
  uint x_first, x_batch, x_ld;
  uint lengths_first;
  uint y_first, y_ld;
};

float load(uint batch, uint i, uint j) { return LOADED(x[x_first + batch * x_batch + i * x_ld + j]); }

void store(uint batch, uint j, float sum) {
  const float mean = sum / lengths[lengths_first + batch];
  y[y_first + batch * y_ld + j] = STORE(mean);
}

#include "column_sum.glsl"

void main() {
  for (uint batch = gl_WorkGroupID.y; batch < b; batch += gl_NumWorkGroups.y)
    sum_columns(batch, lengths[lengths_first + batch], h);
}
