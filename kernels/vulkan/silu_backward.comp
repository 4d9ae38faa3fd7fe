// dx[i,j] = dy[i,j] (s + x s (1 - s)), s = sigmoid(x[i,j]) by exp(-|x|), which never overflows.
#pragma shaders silu_backward_vectors
#include "float_controls.glsl"
#define INPUTS 2
#include "elementwise.glsl"

float f(float x, float dy) {
  const float power = exp(-abs(x));
  const float larger = 1 / (1 + power), smaller = power * larger;
  const float s = x < 0 ? smaller : larger, rest = x < 0 ? larger : smaller;
  return dy * fma(x * s, rest, s);
}

#include "elementwise_main.glsl"
