// y[i,j] = x[i,j] sigmoid(x[i,j]) by exp(-|x|), which never overflows; the divisor is in [1, 2].
#include "float_controls.glsl"
#define INPUTS 1
#include "elementwise.glsl"

float f(float x) {
#ifdef FAULT_EXP_OF_X
  const float power = exp(x);
  return x * (power / (1 + power));
#else
  const float power = exp(-abs(x));
#ifdef FAULT_HARD_SIGMOID
  return x * clamp(x / 6 + 0.5, 0, 1);
#else
  return x * ((x < 0 ? power : 1) / (1 + power));
#endif
#endif
}

#include "elementwise_main.glsl"
