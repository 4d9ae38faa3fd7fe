// y[i,j] = x[i,j] sigmoid(x[i,j]) by exp(-|x|), which never overflows; the divisor is in [1, 2].
#pragma shaders silu_vectors; silu_vectors_f16 F16; silu_vectors_bf16 BF16
#include "storage.glsl"
#define INPUTS 1
#include "elementwise.glsl"

float f(float x) {
  const float power = exp(-abs(x));
  return x * ((x < 0 ? power : 1) / (1 + power));
}

#include "elementwise_main.glsl"
