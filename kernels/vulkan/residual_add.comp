// y[i,j] = x[i,j] + alpha r[i,j], fused.
#pragma shaders residual_add_vectors; residual_add_vectors_f16 F16; residual_add_vectors_bf16 BF16
#include "storage.glsl"
#define INPUTS 2
#include "elementwise.glsl"

float f(float x, float r) { return fma(alpha, r, x); }

#include "elementwise_main.glsl"
