// Scale and codes of every group of 256 from absmax [n, b] (rows of unit stride) and offset [1]: absmax2[g] = max
// |absmax - offset|, q[i] = number of midpoints m with absmax[i] - offset > m absmax2[g]. codes [256 g] bytes in words.
// One workgroup per group: limits in shared memory, binary search. Maxima are taken of bits, which order like
// magnitudes, NaN last.
#pragma shaders nf4_absmax_quantize_groups
#include "float_controls.glsl"
#include "nf4_absmax.glsl"
#extension GL_EXT_control_flow_attributes : require
layout(local_size_x = 256) in;

layout(set = 0, binding = 0) readonly buffer Absmax { float absmax[]; };
layout(set = 0, binding = 1) writeonly buffer Codes { uint codes[]; };
layout(set = 0, binding = 2) writeonly buffer Absmax2 { uint absmax2[]; };
layout(set = 0, binding = 3) readonly buffer Offset { float offset[]; };
layout(push_constant) uniform Push {
  uint count, width, absmax_first, ld;
  uint codes_first;  // in words
  uint absmax2_first, offset_first;
};

shared uint most[256];
shared float limits[256];
shared uint chosen[256];

void main() {
  const uint lane = gl_LocalInvocationID.x, groups = (count + GROUP - 1) / GROUP;
  const float middle = offset[offset_first];
  const float midpoint = lane < 255 ? (absmax_entry(lane) + absmax_entry(lane + 1)) * 0.5 : 0;
  // All invocations of a workgroup run the same number of iterations: none may miss a barrier.
  for (uint g = gl_WorkGroupID.x; g < groups; g += gl_NumWorkGroups.x) {
    const uint i = g * GROUP + lane;
    const bool inside = i < count;
    const float value = inside ? absmax_value(absmax[absmax_first + absmax_place(i, width, ld)]) : 0;
    const float v = value - middle;
    most[lane] = inside ? floatBitsToUint(v) & 0x7fffffffu : 0;
    barrier();
    for (uint step = 128; step > 0; step >>= 1) {
      if (lane < step) most[lane] = max(most[lane], most[lane + step]);
      barrier();
    }
    const uint largest = most[0];
    const bool nan = largest > 0x7f800000u, zero = largest < 0x0d800000u;  // below 2^-100
    const float scale = nan || zero ? 0 : uintBitsToFloat(largest);
    precise float limit = midpoint * scale;
    limits[lane] = limit;
    barrier();
    uint below = 0;
    [[unroll]] for (uint half_of = 128; half_of > 0; half_of >>= 1) {
      if (v > limits[below + half_of - 1]) below += half_of;
    }
    chosen[lane] = inside && scale > 0 ? below : ZERO_CODE;
    barrier();
    if (lane < 64)
      codes[codes_first + g * 64 + lane] = chosen[4 * lane] | chosen[4 * lane + 1] << 8 | chosen[4 * lane + 2] << 16 |
                                           chosen[4 * lane + 3] << 24;
    if (lane == 0) absmax2[absmax2_first + g] = nan ? 0x7fc00000u : floatBitsToUint(scale);
    barrier();  // before the next group's maxima
  }
}
