// Sums and maxima over the 256 invocations of a workgroup: a tree in shared memory; all invocations get the same bits.
// Every invocation must call these: they contain barriers.
#include "exponential.glsl"

shared float reduced[256];

float workgroup_sum(float x) {
  const uint lane = gl_LocalInvocationID.x;
  reduced[lane] = x;
  barrier();
  for (uint width = 128; width > 0; width >>= 1) {
    if (lane < width) reduced[lane] += reduced[lane + width];
    barrier();
  }
  const float sum = reduced[0];
  barrier();
  return sum;
}

float workgroup_max(float x) {
  const uint lane = gl_LocalInvocationID.x;
  reduced[lane] = x;
  barrier();
  for (uint width = 128; width > 0; width >>= 1) {
    if (lane < width) reduced[lane] = max(reduced[lane], reduced[lane + width]);
    barrier();
  }
  const float top = reduced[0];
  barrier();
  return top;
}
