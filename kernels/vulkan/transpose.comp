// dst[j,i] = src[i,j]; src [m,n], dst [n,m], f32 with rows of unit stride, moved as bits. A 32x32 tile passes through
// shared memory, so that both reads and writes run along rows; its pitch of 33 avoids bank conflicts.
#pragma shaders transpose_tiled32
layout(local_size_x = 32, local_size_y = 8) in;

layout(set = 0, binding = 0) readonly buffer Src { uint src[]; };
layout(set = 0, binding = 1) writeonly buffer Dst { uint dst[]; };
layout(push_constant) uniform Push {
  uint m, n;
  uint src_first, src_ld;
  uint dst_first, dst_ld;
};

shared uint tile[32][33];  // [row of src][column of src]

void transpose_tile(uint row0, uint column0) {
  const uint lx = gl_LocalInvocationID.x, ly = gl_LocalInvocationID.y;
  for (uint i = ly; i < 32; i += 8)
    if (row0 + i < m && column0 + lx < n) tile[i][lx] = src[src_first + (row0 + i) * src_ld + column0 + lx];
  barrier();
  for (uint j = ly; j < 32; j += 8)
    if (column0 + j < n && row0 + lx < m) dst[dst_first + (column0 + j) * dst_ld + row0 + lx] = tile[lx][j];
  barrier();
}

void main() {
  for (uint row0 = gl_WorkGroupID.y * 32; row0 < m; row0 += gl_NumWorkGroups.y * 32)
    for (uint column0 = gl_WorkGroupID.x * 32; column0 < n; column0 += gl_NumWorkGroups.x * 32)
      transpose_tile(row0, column0);
}
