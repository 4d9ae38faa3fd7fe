// y[i] = sum_p w[i,p] * x[p]; blocks: rows of super-blocks, as words, w their values; x [k], y [rows] f32. 64 invocations
// share a row, four rows a workgroup. Each takes every 64th word of codes, eight weights decoded in registers, and a tree in
// shared memory adds the partial sums; the order does not depend on alignment.
#pragma shaders q4_k_gemv_cooperative
#extension GL_GOOGLE_include_directive : require
#include "rows.glsl"

// True if x starts at a multiple of 16 bytes.
layout(constant_id = 0) const bool VECTOR_X = false;
layout(set = 0, binding = 0) readonly buffer Blocks { uint blocks[]; };
layout(set = 0, binding = 1) readonly buffer X { float x[]; };
layout(set = 0, binding = 1) readonly buffer X4 { vec4 x4[]; };
layout(set = 0, binding = 2) writeonly buffer Y { float y[]; };
layout(push_constant) uniform Push {
  uint rows, k;
  uint blocks_first, blocks_ld, x_first, y_first;
};
#include "q4_k.glsl"
DEFINE_LOAD4(load_x, x, x4, VECTOR_X)
DEFINE_REDUCE(row_sum, PLUS)

void main() {
  const uint lane = gl_LocalInvocationID.x;
  const uint words = (k + 255) / 256 * 32;
  // All invocations of a workgroup run the same number of iterations: none may miss a barrier.
  for (uint row0 = gl_WorkGroupID.x * 4; row0 < rows; row0 += gl_NumWorkGroups.x * 4) {
    const uint row = row0 + gl_LocalInvocationID.y;
    vec4 sum = vec4(0);
    if (row < rows)
      for (uint n = lane; n < words; n += 64) {
        const uint block = blocks_first + row * blocks_ld + (n >> 5) * 36;
        const uint group = n >> 3 & 3u, word = blocks[block + 4 + (n & 31u)];
        for (uint high = 0; high < 2; ++high) {
          const uint p = (n >> 5) * 256 + 64 * group + 32 * high + 4 * (n & 7u);
          if (p >= k) continue;
          vec4 w = values_of(line_of(block, 2 * group + high), word, 4 * high);
          // Padding may be NaN or infinite.
          if (p + 1 >= k) w.y = 0;
          if (p + 2 >= k) w.z = 0;
          if (p + 3 >= k) w.w = 0;
          sum = fma(w, load_x(x_first + p, k - p), sum);
        }
      }
    const float total = row_sum(sum4(sum));
    if (lane == 0 && row < rows) y[y_first + row] = total;
  }
}
