// y[i,j] = sum_p x[i,p] * w[j,p] for at most ROWS rows i, with w read once; blocks: rows of super-blocks, as words, w [n,k]
// their values; x [m,k] and y [m,n] f32 with rows of unit stride. 64 invocations share a row of w, four rows a workgroup. Each
// takes every 64th word of codes, decodes its eight weights in registers and multiplies them by each row of x; trees in shared
// memory add the partial sums. The order depends on k alone.
#pragma shaders q4_k_matmul_nt_few4 ROWS=4; q4_k_matmul_nt_few16 ROWS=16
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "rows.glsl"

// True if every row of x starts at a multiple of 16 bytes.
layout(constant_id = 0) const bool VECTOR_X = false;
layout(set = 0, binding = 0) readonly buffer X { float x[]; };
layout(set = 0, binding = 0) readonly buffer X4 { vec4 x4[]; };
layout(set = 0, binding = 1) readonly buffer Blocks { uint blocks[]; };
layout(set = 0, binding = 2) writeonly buffer Y { float y[]; };
layout(push_constant) uniform Push {
  uint m, k, n;
  uint x_first, x_ld;
  uint b_first, b_ld;
  uint y_first, y_ld;
};
#include "q4_k.glsl"
DEFINE_LOAD4(load_x, x, x4, VECTOR_X)
DEFINE_REDUCE(row_sum, PLUS)

void main() {
  const uint lane = gl_LocalInvocationID.x;
  const uint words = (k + 255) / 256 * 32;
  // All invocations of a workgroup run the same number of iterations: none may miss a barrier.
  for (uint row0 = gl_WorkGroupID.x * 4; row0 < n; row0 += gl_NumWorkGroups.x * 4) {
    const uint row = row0 + gl_LocalInvocationID.y;
    vec4 sums[ROWS];
    [[unroll]] for (uint i = 0; i < ROWS; ++i) sums[i] = vec4(0);
    if (row < n)
      for (uint w = lane; w < words; w += 64) {
        const uint block = b_first + row * b_ld + (w >> 5) * 36;
        const uint group = w >> 3 & 3u, word = blocks[block + 4 + (w & 31u)];
        [[unroll]] for (uint high = 0; high < 2; ++high) {
          const uint p = (w >> 5) * 256 + 64 * group + 32 * high + 4 * (w & 7u);
          if (p >= k) continue;
          vec4 v = values_of(line_of(block, 2 * group + high), word, 4 * high);
          // Padding may be NaN or infinite.
          if (p + 1 >= k) v.y = 0;
          if (p + 2 >= k) v.z = 0;
          if (p + 3 >= k) v.w = 0;
          [[unroll]] for (uint i = 0; i < ROWS; ++i)
            if (i < m) sums[i] = fma(v, load_x(x_first + i * x_ld + p, k - p), sums[i]);
        }
      }
    [[unroll]] for (uint i = 0; i < ROWS; ++i) {
      if (i >= m) break;
      const float total = row_sum(sum4(sums[i]));
      if (lane == 0 && row < n) y[y_first + i * y_ld + row] = total;
    }
  }
}
