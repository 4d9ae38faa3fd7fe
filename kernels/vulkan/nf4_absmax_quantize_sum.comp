// One level of the sum of nf4_absmax_quantize: to[g] = sum of group g of 256 of the terms, a tree; the last level forms
// the offset from the sum. Terms are in rows of `width` numbers; on higher levels none is small or negative. One
// workgroup per group.
#pragma shaders nf4_absmax_quantize_sum
#include "float_controls.glsl"
layout(local_size_x = 256) in;
#include "reduce.glsl"
#include "nf4_absmax.glsl"

layout(set = 0, binding = 0) readonly buffer Terms { float terms[]; };
layout(set = 0, binding = 1) writeonly buffer To { float to[]; };
layout(push_constant) uniform Push {
  uint count, width, first, ld, to_first, last;
  float reciprocal;
};

void main() {
  const uint groups = max((count + GROUP - 1) / GROUP, 1);
  for (uint g = gl_WorkGroupID.x; g < groups; g += gl_NumWorkGroups.x) {
    const uint i = g * GROUP + gl_LocalInvocationID.x;
    float sum = workgroup_sum(i < count ? absmax_value(terms[first + absmax_place(i, width, ld)]) : 0);
    if (last != 0) {
      precise float mean = sum * reciprocal;
      // Compare bits, since float comparisons with NaN and infinity are not reliable.
      sum = (floatBitsToUint(sum) & 0x7fffffffu) < 0x7f800000u ? nf4_scale(mean) : uintBitsToFloat(0x7fc00000u);
    }
    if (gl_LocalInvocationID.x == 0) to[to_first + g] = sum;
  }
}
