// loss[i] = sum_j (pos_weight[j] t softplus(-x) + (1 - t) softplus(x)) / classes, softplus(z) = max(z, 0) +
// log1p(exp(-|z|)); logits and targets [rows, classes] f32 with rows of unit stride, other tensors dense. A workgroup
// takes a row.
#pragma shaders bce_with_logits
#include "float_controls.glsl"
layout(local_size_x = 256) in;
#include "log1p.glsl"
#include "reduce.glsl"

layout(set = 0, binding = 0) readonly buffer X { float x[]; };
layout(set = 0, binding = 1) readonly buffer T { float targets[]; };
layout(set = 0, binding = 2) readonly buffer W { float pos_weight[]; };
layout(set = 0, binding = 3) writeonly buffer L { float loss[]; };
layout(push_constant) uniform Push {
  uint rows, classes;
  uint x_first, x_ld, targets_first, targets_ld, weight_first, loss_first;
};

void main() {
  const uint lane = gl_LocalInvocationID.x;
  // All invocations of a workgroup run the same number of iterations: none may miss a barrier.
  for (uint row = gl_WorkGroupID.x; row < rows; row += gl_NumWorkGroups.x) {
    float sum = 0;
    for (uint j = lane; j < classes; j += 256) {
      const float v = x[x_first + row * x_ld + j], t = targets[targets_first + row * targets_ld + j];
      const float beside = log1p_of(exp_of(-abs(v)));
      sum += pos_weight[weight_first + j] * t * (max(-v, 0.0) + beside) + (1.0 - t) * (max(v, 0.0) + beside);
    }
    const float total = workgroup_sum(sum);
    if (lane == 0) loss[loss_first + row] = total / float(classes);
  }
}
