// y[i,j] = sum_p x[i,p] * w[j,p] for one row i a workgroup and four rows j of w [n,k], in NF4 codes; x [m,k] and y [m,n] f32
// with rows of unit stride. 64 invocations share a row of w: each decodes every 64th word of eight codes, and a tree in shared
// memory adds their sums; the order does not depend on alignment.
#pragma shaders nf4_matmul_nt_gemv
#include "float_controls.glsl"
#extension GL_EXT_control_flow_attributes : require
layout(local_size_x = 64, local_size_y = 4) in;

// True if every row of x starts at a multiple of 16 bytes.
layout(constant_id = 0) const bool VECTOR_X = false;
layout(set = 0, binding = 0) readonly buffer X { float x[]; };
layout(set = 0, binding = 0) readonly buffer X4 { vec4 x4[]; };
layout(set = 0, binding = 2) writeonly buffer Y { float y[]; };
layout(push_constant) uniform Push {
  uint m, k, n;
  uint x_first, x_ld;
  uint b_first, b_ld;
  uint y_first, y_ld;
  uint absmax_first, absmax_ld;
  uint w_k;
  float codebook[16];
};
#include "nf4_operand.glsl"

shared float partial[4][64];

vec4 load_x(uint row, uint p) {
  const uint at = x_first + row * x_ld + p;
  if (p + 3 < k) {
    if (VECTOR_X) return x4[at / 4];
    return vec4(x[at], x[at + 1], x[at + 2], x[at + 3]);
  }
  vec4 v = vec4(0);
  if (p < k) v.x = x[at];
  if (p + 1 < k) v.y = x[at + 1];
  if (p + 2 < k) v.z = x[at + 2];
  return v;
}

void main() {
  const uint lane = gl_LocalInvocationID.x, slot = gl_LocalInvocationID.y;
  load_table();
  // All invocations of a workgroup run the same number of iterations: none may miss a barrier.
  for (uint i = gl_WorkGroupID.y; i < m; i += gl_NumWorkGroups.y)
    for (uint first = gl_WorkGroupID.x * 4; first < n; first += gl_NumWorkGroups.x * 4) {
      const uint j = first + slot;
      vec4 low = vec4(0), high = vec4(0);
      for (uint p = lane * 8; p < k; p += 512) {
        low = fma(weight4(j, p, n, k), load_x(i, p), low);
        high = fma(weight4(j, p + 4, n, k), load_x(i, p + 4), high);
      }
      const vec4 sum = low + high;
      partial[slot][lane] = (sum.x + sum.y) + (sum.z + sum.w);
      barrier();
      for (uint width = 32; width > 0; width >>= 1) {
        if (lane < width) partial[slot][lane] += partial[slot][lane + width];
        barrier();
      }
      if (lane == 0 && j < n) y[y_first + i * y_ld + j] = partial[slot][0];
      barrier();
    }
}
