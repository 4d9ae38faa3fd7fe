// Rotation of pairs by given tables: y1 = x1 c - x2 s, y2 = x2 c + x1 s, where c and s are column i of the row of the
// tables that positions[row] names. An invocation takes one pair of a row and rotates it in every head.
// DIRECTION is -1 in the gradient.
#pragma shaders rope_table_pairs DIRECTION=1.0; rope_table_pairs_f16 DIRECTION=1.0 F16
#pragma shaders rope_table_pairs_bf16 DIRECTION=1.0 BF16; rope_table_backward_pairs DIRECTION=-1.0
#pragma shaders rope_table_backward_pairs_f16 DIRECTION=-1.0 F16; rope_table_backward_pairs_bf16 DIRECTION=-1.0 BF16
#extension GL_GOOGLE_include_directive : require
#include "storage.glsl"
layout(local_size_x = 64) in;

layout(set = 0, binding = 0) readonly buffer X { STORED x[]; };
layout(set = 0, binding = 1) writeonly buffer Y { STORED y[]; };
layout(set = 0, binding = 2) readonly buffer Cosines { float cosines[]; };
layout(set = 0, binding = 3) readonly buffer Sines { float sines[]; };
layout(set = 0, binding = 4) readonly buffer Positions { uint positions[]; };
layout(push_constant) uniform Push {
  uint rows, heads, half_d;
  uint x_first, x_row, x_head, y_first, y_row, y_head;
  uint cosines_first, cosines_ld, sines_first, sines_ld, positions_first;
  uint interleaved;
};

void main() {
  const uint pairs = rows * half_d;
  for (uint pair = gl_GlobalInvocationID.x; pair < pairs; pair += gl_NumWorkGroups.x * 64) {
    const uint row = pair / half_d, i = pair % half_d, place = positions[positions_first + row];
    const float c = cosines[cosines_first + place * cosines_ld + i];
    const float s = DIRECTION * sines[sines_first + place * sines_ld + i];
    const uint first = interleaved != 0 ? 2 * i : i, second = interleaved != 0 ? 2 * i + 1 : i + half_d;
    for (uint head = 0; head < heads; ++head) {
      const uint from = x_first + row * x_row + head * x_head, to = y_first + row * y_row + head * y_head;
      const float x1 = LOADED(x[from + first]), x2 = LOADED(x[from + second]);
      y[to + first] = STORE(x1 * c - x2 * s);
      y[to + second] = STORE(x2 * c + x1 * s);
    }
  }
}
