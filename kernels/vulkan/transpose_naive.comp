// dst[j,i] = src[i,j], one element per invocation, moved as bits; tensors as in transpose.comp.
#pragma shaders transpose_naive
layout(local_size_x = 32, local_size_y = 8) in;

layout(set = 0, binding = 0) readonly buffer Src { uint src[]; };
layout(set = 0, binding = 1) writeonly buffer Dst { uint dst[]; };
layout(push_constant) uniform Push {
  uint m, n;
  uint src_first, src_ld;
  uint dst_first, dst_ld;
};

void main() {
  for (uint i = gl_GlobalInvocationID.y; i < m; i += gl_NumWorkGroups.y * 8)
    for (uint j = gl_GlobalInvocationID.x; j < n; j += gl_NumWorkGroups.x * 32)
      dst[dst_first + j * dst_ld + i] = src[src_first + i * src_ld + j];
}
