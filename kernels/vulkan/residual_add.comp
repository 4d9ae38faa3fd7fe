// y[i,j] = x[i,j] + alpha r[i,j], fused.
#include "float_controls.glsl"
#define INPUTS 2
#include "elementwise.glsl"

float f(float x, float r) {
#ifdef FAULT_ALPHA_IGNORED
  return x + r;
#else
  return fma(alpha, r, x);
#endif
}

#include "elementwise_main.glsl"
