// y[i,p] = d sc q - dmin m; blocks: rows of super-blocks, as words; y [rows,k] f32 with rows of unit stride. An
// invocation per word of codes: values from 64 (l / 8) + 4 (l mod 8) of its super-block and from 32 further on.
#pragma shaders q4_k_dequantize_words
#extension GL_GOOGLE_include_directive : require
#include "float_controls.glsl"
layout(local_size_x = 64) in;

// True if every row of y starts at a multiple of 16 bytes.
layout(constant_id = 0) const bool VECTORS = false;
layout(set = 0, binding = 0) readonly buffer Blocks { uint blocks[]; };
layout(set = 0, binding = 1) writeonly buffer Y { float y[]; };
layout(set = 0, binding = 1) writeonly buffer Y4 { vec4 y4[]; };
layout(push_constant) uniform Push {
  uint rows, k;
  uint blocks_first, blocks_ld;
  uint y_first, y_ld;
};
#include "q4_k.glsl"

void main() {
  const uint count = (k + 255) / 256;
  for (uint i = gl_WorkGroupID.y; i < rows; i += gl_NumWorkGroups.y)
    for (uint n = gl_GlobalInvocationID.x; n < count * 32; n += gl_NumWorkGroups.x * 64) {
      const uint lane = n & 31u, group = lane >> 3;
      const uint block = blocks_first + i * blocks_ld + (n >> 5) * 36;
      const uint word = blocks[block + 4 + lane];
      for (uint high = 0; high < 2; ++high) {
        const vec4 v = values_of(line_of(block, 2 * group + high), word, 4 * high);
        const uint p = (n >> 5) * 256 + 64 * group + 32 * high + 4 * (lane & 7u), at = y_first + i * y_ld + p;
        if (VECTORS && p + 4 <= k) y4[at >> 2] = v;
        else
          for (uint t = 0; t < 4 && p + t < k; ++t) y[at + t] = v[t];
      }
    }
}
