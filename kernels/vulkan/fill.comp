// y[i,j] = value; y [m,n] with rows of unit stride, value as its bits.
#pragma shaders fill_rows
layout(local_size_x = 32, local_size_y = 8) in;

layout(set = 0, binding = 0) writeonly buffer Y { uint y[]; };
layout(push_constant) uniform Push {
  uint m, n;
  uint y_first, y_ld;
  uint value;
};

void main() {
  for (uint i = gl_GlobalInvocationID.y; i < m; i += gl_NumWorkGroups.y * 8)
    for (uint j = gl_GlobalInvocationID.x; j < n; j += gl_NumWorkGroups.x * 32) y[y_first + i * y_ld + j] = value;
}
