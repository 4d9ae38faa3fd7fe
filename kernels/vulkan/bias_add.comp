// y[i,j] = x[i,j] + bias[j]; the leading dimension of bias is 0.
#pragma shaders bias_add_vectors; bias_add_vectors_f16 F16; bias_add_vectors_bf16 BF16
#include "storage.glsl"
#define INPUTS 2
#define SECOND_IS_F32
#include "elementwise.glsl"

float f(float x, float bias) { return x + bias; }

#include "elementwise_main.glsl"
