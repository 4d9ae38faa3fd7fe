// absmax[i] = code[q[i]] absmax2[i/256] + offset; codes [256 g] bytes in words, absmax2 [g], offset [1], absmax [n, b]
// f32 with rows of unit stride, i in row-major order. Four elements, a word of codes, per invocation.
#pragma shaders nf4_absmax_dequantize_words
#include "float_controls.glsl"
#include "nf4_absmax.glsl"
#extension GL_EXT_control_flow_attributes : require
layout(local_size_x = 256) in;

layout(set = 0, binding = 0) readonly buffer Codes { uint codes[]; };
layout(set = 0, binding = 1) readonly buffer Absmax2 { float absmax2[]; };
layout(set = 0, binding = 2) readonly buffer Offset { float offset[]; };
layout(set = 0, binding = 3) writeonly buffer Absmax { float absmax[]; };
layout(push_constant) uniform Push {
  uint count, width;
  uint codes_first;  // in words
  uint absmax2_first, offset_first, absmax_first, ld;
};

shared float table[256];

void main() {
  table[gl_LocalInvocationID.x] = absmax_entry(gl_LocalInvocationID.x);
  barrier();
  const float middle = offset[offset_first];
  for (uint i = gl_GlobalInvocationID.x * 4; i < count; i += gl_NumWorkGroups.x * 1024) {
    const uint word = codes[codes_first + i / 4];
    const float scale = absmax2[absmax2_first + i / GROUP];
    [[unroll]] for (uint e = 0; e < 4; ++e)
      if (i + e < count)
        absmax[absmax_first + absmax_place(i + e, width, ld)] = fma(table[(word >> (8 * e)) & 255], scale, middle);
  }
}
