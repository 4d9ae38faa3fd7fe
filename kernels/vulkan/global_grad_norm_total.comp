// norm[0] = sqrt(sum of `count` partial sums). One workgroup.
#pragma shaders global_grad_norm_total
#include "float_controls.glsl"
layout(local_size_x = 256) in;
#include "reduce.glsl"

layout(set = 0, binding = 0) readonly buffer Partial { float partial[]; };
layout(set = 0, binding = 1) writeonly buffer N { float norm[]; };
layout(push_constant) uniform Push { uint count, partial_first, norm_first; };

void main() {
  float sum = 0;
  for (uint i = gl_LocalInvocationID.x; i < count; i += 256) sum += partial[partial_first + i];
  sum = workgroup_sum(sum);
  if (gl_LocalInvocationID.x == 0) norm[norm_first] = isnan(sum) ? sum : sqrt(sum);
}
