// dtable[v,j] = sum over t with ids[t] = v of dy[t,j]; dy [t,h] and dtable [v,h] (f32) with rows of unit
// stride, ids [t].
// Two dispatches: zeros everywhere (ZEROS), then the first token of each id sums all tokens of that id in order, so
// that no two invocations write the same element.
#pragma shaders embedding_backward_first_of_id; embedding_backward_first_of_id_f16 F16; embedding_backward_first_of_id_bf16 BF16
#include "storage.glsl"
layout(local_size_x = 64) in;

layout(constant_id = 0) const bool ZEROS = false;
layout(set = 0, binding = 0) readonly buffer Ids { int ids[]; };
layout(set = 0, binding = 1) readonly buffer Dy { STORED dy[]; };
layout(set = 0, binding = 2) writeonly buffer Dtable { float dtable[]; };
layout(push_constant) uniform Push {
  uint t, v, h;
  uint ids_first;
  uint dy_first, dy_ld;
  uint dtable_first, dtable_ld;
};

bool first_of_its_id(uint token) {
  const int id = ids[ids_first + token];
  for (uint u = 0; u < token; ++u)
    if (ids[ids_first + u] == id) return false;
  return true;
}

void main() {
  const uint j = gl_GlobalInvocationID.x;
  if (j >= h) return;
  if (ZEROS) {
    for (uint row = gl_WorkGroupID.y; row < v; row += gl_NumWorkGroups.y) dtable[dtable_first + row * dtable_ld + j] = 0;
    return;
  }
  for (uint token = gl_WorkGroupID.y; token < t; token += gl_NumWorkGroups.y) {
    if (!first_of_its_id(token)) continue;
    const int id = ids[ids_first + token];
    float sum = 0;
    for (uint u = token; u < t; ++u)
      if (ids[ids_first + u] == id) sum += LOADED(dy[dy_first + u * dy_ld + j]);
    dtable[dtable_first + id * dtable_ld + j] = sum;
  }
}
