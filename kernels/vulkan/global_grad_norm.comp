// partial[w] = sum of the squares of workgroup w's elements of g (n, f32, dense). An invocation takes every 256 *
// groups-th element.
#pragma shaders global_grad_norm_partial
#include "float_controls.glsl"
layout(local_size_x = 256) in;
#include "reduce.glsl"

layout(set = 0, binding = 0) readonly buffer G { float g[]; };
layout(set = 0, binding = 1) writeonly buffer Partial { float partial[]; };
layout(push_constant) uniform Push { uint n, g_first, partial_first; };

void main() {
  float sum = 0;
  for (uint i = gl_GlobalInvocationID.x; i < n; i += gl_NumWorkGroups.x * 256) {
    const float x = g[g_first + i];
    sum = fma(x, x, sum);
  }
  sum = workgroup_sum(sum);
  if (gl_LocalInvocationID.x == 0) partial[partial_first + gl_WorkGroupID.x] = sum;
}
