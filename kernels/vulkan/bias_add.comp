// y[i,j] = x[i,j] + bias[j]; the leading dimension of bias is 0.
#include "float_controls.glsl"
#define INPUTS 2
#include "elementwise.glsl"

float f(float x, float bias) {
#ifdef FAULT_BIAS_DROPPED
  return x;
#else
  return x + bias;
#endif
}

#include "elementwise_main.glsl"
