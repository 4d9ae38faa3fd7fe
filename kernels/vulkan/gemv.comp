// y[i] = sum_p a[i,p] * x[p]; a [m,k] with rows of unit stride, x [k] and y [m] of any stride, each in the
// variant's format (storage.glsl).
// 64 invocations share a row, four rows a workgroup. Each sums every 64th group of four terms in four accumulators, and
// a tree in shared memory adds the 256 partial sums; the order does not depend on alignment.
#pragma shaders gemv_cooperative; gemv_cooperative_f16 F16; gemv_cooperative_bf16 BF16
#include "storage.glsl"
#extension GL_EXT_control_flow_attributes : require
layout(local_size_x = 64, local_size_y = 4) in;

// True if every row of A, and x of unit stride, start at a multiple of four elements: a load then moves four of them.
layout(constant_id = 0) const bool VECTOR_A = false;
layout(constant_id = 1) const bool VECTOR_X = false;
layout(set = 0, binding = 0) readonly buffer A { STORED a[]; };
layout(set = 0, binding = 0) readonly buffer A4 { STORED4 a4[]; };
layout(set = 0, binding = 1) readonly buffer X { STORED x[]; };
layout(set = 0, binding = 1) readonly buffer X4 { STORED4 x4[]; };
layout(set = 0, binding = 2) writeonly buffer Y { STORED y[]; };
layout(push_constant) uniform Push {
  uint m, k;
  uint a_first, a_ld;
  uint x_first, x_stride;
  uint y_first, y_stride;
};

shared float partial[4][64];

vec4 load_a(uint row, uint p) {
  const uint at = a_first + row * a_ld + p;
  if (p + 3 < k) {
    if (VECTOR_A) return LOADED4(a4[at >> 2]);
    return vec4(LOADED(a[at]), LOADED(a[at + 1]), LOADED(a[at + 2]), LOADED(a[at + 3]));
  }
  vec4 v = vec4(LOADED(a[at]), 0, 0, 0);
  if (p + 1 < k) v.y = LOADED(a[at + 1]);
  if (p + 2 < k) v.z = LOADED(a[at + 2]);
  return v;
}

vec4 load_x(uint p) {
  const uint at = x_first + p * x_stride;
  if (p + 3 < k) {
    if (VECTOR_X) return LOADED4(x4[at >> 2]);
    return vec4(LOADED(x[at]), LOADED(x[at + x_stride]), LOADED(x[at + 2 * x_stride]), LOADED(x[at + 3 * x_stride]));
  }
  vec4 v = vec4(LOADED(x[at]), 0, 0, 0);
  if (p + 1 < k) v.y = LOADED(x[at + x_stride]);
  if (p + 2 < k) v.z = LOADED(x[at + 2 * x_stride]);
  return v;
}

void main() {
  const uint lane = gl_LocalInvocationID.x, slot = gl_LocalInvocationID.y;
  // All invocations of a workgroup run the same number of iterations: none may miss a barrier.
  for (uint row0 = gl_WorkGroupID.x * 4; row0 < m; row0 += gl_NumWorkGroups.x * 4) {
    const uint row = row0 + slot;
    vec4 sum = vec4(0);
    if (row < m)
      for (uint p = lane * 4; p < k; p += 256) sum = fma(load_a(row, p), load_x(p), sum);
    partial[slot][lane] = (sum.x + sum.y) + (sum.z + sum.w);
    barrier();
    for (uint width = 32; width > 0; width >>= 1) {
      if (lane < width) partial[slot][lane] += partial[slot][lane + width];
      barrier();
    }
    if (lane == 0 && row < m) y[y_first + row * y_stride] = STORE(partial[slot][0]);
  }
}
