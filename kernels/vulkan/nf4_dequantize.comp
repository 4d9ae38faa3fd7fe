// y[j,p] = code[q[j,p]] absmax[j, p/64]; codes [n, 32 b] bytes in words, absmax [n, b] and y [n,k] f32 with rows of unit
// stride, b = ceil(k/64). Eight columns, a word of codes, per invocation.
#pragma shaders nf4_dequantize_words
#include "float_controls.glsl"
#include "nf4.glsl"
#extension GL_EXT_control_flow_attributes : require
layout(local_size_x = 16, local_size_y = 4) in;

// True if every row of y starts at a multiple of 16 bytes.
layout(constant_id = 0) const bool VECTORS = false;
layout(set = 0, binding = 0) readonly buffer Codes { uint codes[]; };
layout(set = 0, binding = 1) readonly buffer Absmax { float absmax[]; };
layout(set = 0, binding = 2) writeonly buffer Y { float y[]; };
layout(set = 0, binding = 2) writeonly buffer Yv { vec4 yv[]; };
layout(push_constant) uniform Push {
  uint n, k;
  uint codes_first, codes_ld;  // in words
  uint absmax_first, absmax_ld;
  uint y_first, y_ld;
  float codebook[16];
};

shared float table[16];

void main() {
  if (gl_LocalInvocationIndex == 0)
    [[unroll]] for (uint i = 0; i < 16; ++i) table[i] = codebook[i];
  barrier();
  for (uint j = gl_GlobalInvocationID.y; j < n; j += gl_NumWorkGroups.y * 4)
    for (uint p = gl_GlobalInvocationID.x * 8; p < k; p += gl_NumWorkGroups.x * 128) {
      const uint word = codes[codes_first + j * codes_ld + p / 8];
      const float scale = nf4_scale(absmax[absmax_first + j * absmax_ld + p / BLOCK_SIZE]);
      precise float v[8];
      [[unroll]] for (uint i = 0; i < 8; ++i)
        v[i] = table[(word >> (4 * (i ^ 1))) & 15] * scale;  // the earlier of two codes is in the high bits
      const uint at = y_first + j * y_ld + p;
      if (p + 8 <= k) {
        if (VECTORS) {
          yv[at / 4] = vec4(v[0], v[1], v[2], v[3]);
          yv[at / 4 + 1] = vec4(v[4], v[5], v[6], v[7]);
        } else {
          [[unroll]] for (uint i = 0; i < 8; ++i) y[at + i] = v[i];
        }
      } else {
        for (uint i = 0; i < k - p; ++i) y[at + i] = v[i];
      }
    }
}
