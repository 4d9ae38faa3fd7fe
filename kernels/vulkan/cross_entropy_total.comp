// total[0] = sum_i loss[i] / normalizer[0]; the normalizer is sum_i weights[targets[i]] if MEAN, else 1. One workgroup.
// With WEIGHTS_ALONE, the normalizer alone, before there are losses.
#pragma shaders cross_entropy_total; cross_entropy_normalizer WEIGHTS_ALONE
#include "float_controls.glsl"
layout(local_size_x = 256) in;
#include "reduce.glsl"

layout(set = 0, binding = 0) readonly buffer L { float loss[]; };
layout(set = 0, binding = 1) readonly buffer T { int targets[]; };
layout(set = 0, binding = 2) readonly buffer W { float weights[]; };
layout(set = 0, binding = 3) writeonly buffer Total { float total[]; };
layout(set = 0, binding = 4) writeonly buffer N { float normalizer[]; };
layout(push_constant) uniform Push {
  uint rows, mean;
  uint loss_first, targets_first, weights_first, total_first, normalizer_first;
};

void main() {
  const uint lane = gl_LocalInvocationID.x;
  float loss_sum = 0, weight_sum = 0;
  for (uint i = lane; i < rows; i += 256) {
#ifndef WEIGHTS_ALONE
    loss_sum += loss[loss_first + i];
#endif
    weight_sum += weights[weights_first + targets[targets_first + i]];
  }
#ifndef WEIGHTS_ALONE
  loss_sum = workgroup_sum(loss_sum);
#endif
  weight_sum = workgroup_sum(weight_sum);
  if (lane == 0) {
    normalizer[normalizer_first] = mean != 0 ? weight_sum : 1.0;
#ifndef WEIGHTS_ALONE
    total[total_first] = mean != 0 ? loss_sum / weight_sum : loss_sum;
#endif
  }
}
