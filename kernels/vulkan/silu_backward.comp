// dx[i,j] = dy[i,j] (s + x s (1 - s)), s = sigmoid(x[i,j]) by exp(-|x|), which never overflows.
#pragma shaders silu_backward_vectors; silu_backward_vectors_f16 F16; silu_backward_vectors_bf16 BF16
#include "storage.glsl"
#define INPUTS 2
#include "elementwise.glsl"

float f(float x, float dy) {
  const float power = exp(-abs(x));
  const float larger = 1 / (1 + power), smaller = power * larger;
  const float s = x < 0 ? smaller : larger, rest = x < 0 ? larger : smaller;
  return dy * fma(x * s, rest, s);
}

#include "elementwise_main.glsl"
