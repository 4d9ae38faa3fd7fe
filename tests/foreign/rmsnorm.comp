// RMSNorm as a shader independent of Assay: a workgroup for each row. rmsnorm.spv.yaml is its map.
// Each define plants one fault.
#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer Source { float x[]; };
layout(set = 0, binding = 1) readonly buffer Weight { float weight[]; };
layout(set = 0, binding = 2) writeonly buffer Result { float y[]; };
#ifdef SET_ONE
layout(set = 1, binding = 3) writeonly buffer Saved { float saved[]; };
#elif defined FIFTH_BINDING
layout(set = 0, binding = 4) writeonly buffer Saved { float saved[]; };
#elif !defined NOTHING_SAVED
layout(set = 0, binding = 3) writeonly buffer Saved { float saved[]; };
#endif
layout(push_constant) uniform Push {
  int n, x_stride, y_stride;
  float eps;
};
shared float partial[64];

void main() {
  const int row = int(gl_WorkGroupID.x), lane = int(gl_LocalInvocationID.x);
  float sum = 0.0;
  for (int j = lane; j < n; j += 64) sum += x[row * x_stride + j] * x[row * x_stride + j];
  partial[lane] = sum;
  for (int half_ = 32; half_ > 0; half_ /= 2) {
    barrier();
    if (lane < half_) partial[lane] += partial[lane + half_];
  }
  barrier();
#ifdef EPS_OUTSIDE
  const float scale = 1.0 / (sqrt(partial[0] / float(n)) + eps);
#else
  const float scale = inversesqrt(partial[0] / float(n) + eps);
#endif
#ifndef NOTHING_SAVED
  if (lane == 0) saved[row] = scale;
#endif
#ifdef ONE_TOO_MANY  // past the last element, where no tensor is
  if (lane == 0 && row + 1 == int(gl_NumWorkGroups.x)) saved[row + 1] = 0.0;
#endif
  for (int j = lane; j < n; j += 64) y[row * y_stride + j] = x[row * x_stride + j] * scale * weight[j];
}
