// nf4_absmax_dequantize with one invocation per element.
#pragma shaders nf4_absmax_dequantize_naive
#include "float_controls.glsl"
#include "nf4_absmax.glsl"
layout(local_size_x = 64) in;

layout(set = 0, binding = 0) readonly buffer Codes { uint codes[]; };
layout(set = 0, binding = 1) readonly buffer Absmax2 { float absmax2[]; };
layout(set = 0, binding = 2) readonly buffer Offset { float offset[]; };
layout(set = 0, binding = 3) writeonly buffer Absmax { float absmax[]; };
layout(push_constant) uniform Push {
  uint count, width;
  uint codes_first;  // in words
  uint absmax2_first, offset_first, absmax_first, ld;
};

void main() {
  for (uint i = gl_GlobalInvocationID.x; i < count; i += gl_NumWorkGroups.x * 64) {
    const float entry = absmax_entry((codes[codes_first + i / 4] >> (8 * (i % 4))) & 255);
    absmax[absmax_first + absmax_place(i, width, ld)] = entry * absmax2[absmax2_first + i / GROUP] + offset[offset_first];
  }
}
