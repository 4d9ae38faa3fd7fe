// rounded[i] = p[i], bit for bit: the copy of an f32 parameter; dense vectors of n words that share no memory.
#pragma shaders adamw_step_copy
layout(local_size_x = 256) in;

layout(set = 0, binding = 0) readonly buffer P { uint p[]; };
layout(set = 0, binding = 1) writeonly buffer Rounded { uint rounded[]; };
layout(push_constant) uniform Push { uint n, p_first, rounded_first; };

void main() {
  for (uint i = gl_GlobalInvocationID.x; i < n; i += gl_NumWorkGroups.x * 256)
    rounded[rounded_first + i] = p[p_first + i];
}
