// dx[b,i,j] = dy[b,j] / lengths[b] where i < lengths[b], else 0; dy [b,h] and dx [b,s,h] with rows of unit stride,
// lengths [b].
#pragma shaders mean_pool_backward_rows; mean_pool_backward_rows_f16 F16; mean_pool_backward_rows_bf16 BF16
#include "storage.glsl"
layout(local_size_x = 32, local_size_y = 8) in;

// True if every row of dx starts at a multiple of four elements.
layout(constant_id = 0) const bool VECTORS = false;
layout(set = 0, binding = 0) readonly buffer Lengths { int lengths[]; };
layout(set = 0, binding = 1) readonly buffer Dy { STORED dy[]; };
layout(set = 0, binding = 2) writeonly buffer Dx { STORED dx[]; };
layout(set = 0, binding = 2) writeonly buffer Dxv { STORED4 dxv[]; };
layout(push_constant) uniform Push {
  uint b, s, h;
  uint lengths_first;
  uint dy_first, dy_ld;
  uint dx_first, dx_batch, dx_ld;
};

float share(uint batch, uint j, uint length) { return j < h ? LOADED(dy[dy_first + batch * dy_ld + j]) / length : 0; }

void main() {
  const uint width = VECTORS ? 4 : 1, j = gl_GlobalInvocationID.x * width;
  if (j >= h) return;
  for (uint batch = gl_WorkGroupID.z; batch < b; batch += gl_NumWorkGroups.z) {
    const uint length = lengths[lengths_first + batch];
    vec4 shares = vec4(share(batch, j, length), 0, 0, 0);
    if (VECTORS) shares.yzw = vec3(share(batch, j + 1, length), share(batch, j + 2, length), share(batch, j + 3, length));
    for (uint i = gl_GlobalInvocationID.y; i < s; i += gl_NumWorkGroups.y * 8) {
      const vec4 row = i < length ? shares : vec4(0);
      const uint at = dx_first + batch * dx_batch + i * dx_ld + j;
      if (VECTORS && j + 4 <= h) dxv[at >> 2] = STORE4(row);
      else
        for (uint l = 0; l < min(width, h - j); ++l) dx[at + l] = STORE(row[l]);
    }
  }
}
