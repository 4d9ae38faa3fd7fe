// nf4_absmax_quantize with one invocation per group: two loops over the group; midpoints are recomputed.
#pragma shaders nf4_absmax_quantize_naive
#include "float_controls.glsl"
#include "nf4_absmax.glsl"
layout(local_size_x = 64) in;

layout(set = 0, binding = 0) readonly buffer Absmax { float absmax[]; };
layout(set = 0, binding = 1) writeonly buffer Codes { uint codes[]; };
layout(set = 0, binding = 2) writeonly buffer Absmax2 { uint absmax2[]; };
layout(set = 0, binding = 3) readonly buffer Offset { float offset[]; };
layout(push_constant) uniform Push {
  uint count, width, absmax_first, ld;
  uint codes_first;  // in words
  uint absmax2_first, offset_first;
};

float difference(uint i) {
  return absmax_value(absmax[absmax_first + absmax_place(i, width, ld)]) - offset[offset_first];
}

void main() {
  for (uint g = gl_GlobalInvocationID.x; g * GROUP < count; g += gl_NumWorkGroups.x * 64) {
    const uint from = g * GROUP, end = min(count, from + GROUP);
    uint largest = 0;
    for (uint i = from; i < end; ++i) largest = max(largest, floatBitsToUint(difference(i)) & 0x7fffffffu);
    const bool nan = largest > 0x7f800000u, zero = largest < 0x0d800000u;  // below 2^-100
    const float scale = nan || zero ? 0 : uintBitsToFloat(largest);
    absmax2[absmax2_first + g] = nan ? 0x7fc00000u : floatBitsToUint(scale);
    for (uint word = 0; word < 64; ++word) {
      uint packed = 0;
      for (uint e = 0; e < 4; ++e) {
        const uint i = from + 4 * word + e;
        uint code = ZERO_CODE;
        if (i < end && scale > 0) {
          const float v = difference(i);
          code = 0;
          for (uint half_of = 128; half_of > 0; half_of >>= 1) {
            const uint m = code + half_of - 1;
            precise float limit = (absmax_entry(m) + absmax_entry(m + 1)) * 0.5 * scale;
            if (v > limit) code += half_of;
          }
        }
        packed |= code << (8 * e);
      }
      codes[codes_first + g * 64 + word] = packed;
    }
  }
}
