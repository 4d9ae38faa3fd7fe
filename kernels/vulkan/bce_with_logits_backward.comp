// dlogits[i,j] = dloss[i] / classes ((1 - t) s - pos_weight[j] t (1 - s)), s = sigmoid(logits[i,j]), t = targets[i,j];
// logits, targets and dlogits [rows, classes] f32 with rows of unit stride, other tensors dense. One element an
// invocation at a time.
#pragma shaders bce_with_logits_backward
#include "float_controls.glsl"
layout(local_size_x = 256) in;

layout(set = 0, binding = 0) readonly buffer X { float x[]; };
layout(set = 0, binding = 1) readonly buffer T { float targets[]; };
layout(set = 0, binding = 2) readonly buffer W { float pos_weight[]; };
layout(set = 0, binding = 3) readonly buffer DL { float dloss[]; };
layout(set = 0, binding = 4) writeonly buffer DX { float dx[]; };
layout(push_constant) uniform Push {
  uint rows, classes;
  uint x_first, x_ld, targets_first, targets_ld, weight_first, dloss_first, dx_first, dx_ld;
};

void main() {
  const uint j = gl_GlobalInvocationID.x;
  if (j >= classes) return;
  const float w = pos_weight[weight_first + j];
  for (uint row = gl_WorkGroupID.y; row < rows; row += gl_NumWorkGroups.y) {
    const float v = x[x_first + row * x_ld + j], t = targets[targets_first + row * targets_ld + j];
    // s and 1 - s are 1 / (1 + z) and z / (1 + z), in an order set by the sign of x.
    const float z = isnan(v) ? v : exp(-abs(v)), near_one = 1.0 / (1.0 + z), far_off = z * near_one;
    const float s = v < 0 ? far_off : near_one, rest = v < 0 ? near_one : far_off;
    const float share = dloss[dloss_first + row] / float(classes);
    dx[dx_first + row * dx_ld + j] = ((1.0 - t) * s - w * t * rest) * share;
  }
}
