// dst[i,j] = src[i,j]; both [m,n] f32 with any strides, moved as bits. The launcher orders the axes so that
// neighbouring invocations (along j) write near each other.
#pragma shaders tensor_layout_strided
layout(local_size_x = 32, local_size_y = 8) in;

layout(set = 0, binding = 0) readonly buffer Src { uint src[]; };
layout(set = 0, binding = 1) writeonly buffer Dst { uint dst[]; };
layout(push_constant) uniform Push {
  uint m, n;
  uint src_first, src_row, src_column;
  uint dst_first, dst_row, dst_column;
};

void main() {
  for (uint i = gl_GlobalInvocationID.y; i < m; i += gl_NumWorkGroups.y * 8)
    for (uint j = gl_GlobalInvocationID.x; j < n; j += gl_NumWorkGroups.x * 32)
      dst[dst_first + i * dst_row + j * dst_column] = src[src_first + i * src_row + j * src_column];
}
