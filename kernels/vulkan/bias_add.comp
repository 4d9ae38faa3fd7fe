// y[i,j] = x[i,j] + bias[j]; the leading dimension of bias is 0.
#pragma shaders bias_add_vectors
#include "float_controls.glsl"
#define INPUTS 2
#include "elementwise.glsl"

float f(float x, float bias) { return x + bias; }

#include "elementwise_main.glsl"
