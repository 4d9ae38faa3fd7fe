// g[i] *= limit / (norm[0] + eps), unless norm[0] + eps is at most the limit; g (n) f32, dense, in place.
#pragma shaders clip_grad_norm
#include "float_controls.glsl"
layout(local_size_x = 256) in;

layout(set = 0, binding = 0) buffer G { float g[]; };
layout(set = 0, binding = 1) readonly buffer N { float norm[]; };
layout(push_constant) uniform Push {
  uint n, g_first, norm_first;
  float limit, eps;
};

void main() {
  const float divisor = norm[norm_first] + eps;
  if (divisor <= limit) return;
  // Handle infinity explicitly: Vulkan bounds the error of x / y only for |y| <= 2^126 and specifies nothing for
  // infinity.
  const float by = isnan(divisor) ? divisor : isinf(divisor) ? 0.0 : limit / divisor;
  for (uint i = gl_GlobalInvocationID.x; i < n; i += gl_NumWorkGroups.x * 256) g[g_first + i] *= by;
}
