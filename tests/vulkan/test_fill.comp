// target[i] = source[i] * FACTOR + add, for i < count.
layout(local_size_x = 64) in;
layout(constant_id = 0) const uint FACTOR = 1;
layout(set = 0, binding = 0) readonly buffer Source { uint source[]; };
layout(set = 0, binding = 1) writeonly buffer Target { uint target[]; };
layout(push_constant) uniform Push { uint count, add; };

void main() {
  const uint i = gl_GlobalInvocationID.x;
  if (i < count) target[i] = source[i] * FACTOR + add;
}
