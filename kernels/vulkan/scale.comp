// y[i,j] = alpha x[i,j].
#include "float_controls.glsl"
#define INPUTS 1
#include "elementwise.glsl"

float f(float x) {
#ifdef FAULT_SIGN_LOST
  return abs(alpha) * x;
#else
  return alpha * x;
#endif
}

#include "elementwise_main.glsl"
