// dst[i,j] += alpha src[i,j], fused; dst is bound as input and as output, and every invocation reads what it writes.
#include "float_controls.glsl"
#define INPUTS 2
#include "elementwise.glsl"

float f(float dst, float src) {
#ifdef FAULT_OVERWRITES
  return alpha * src;
#else
  return fma(alpha, src, dst);
#endif
}

#include "elementwise_main.glsl"
