// y[i,j] = x[i,j] + alpha r[i,j], fused.
#pragma shaders residual_add_vectors
#include "float_controls.glsl"
#define INPUTS 2
#include "elementwise.glsl"

float f(float x, float r) { return fma(alpha, r, x); }

#include "elementwise_main.glsl"
