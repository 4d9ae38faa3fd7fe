// y[i,j] = alpha x[i,j].
#pragma shaders scale_vectors
#include "storage.glsl"
#define INPUTS 1
#include "elementwise.glsl"

float f(float x) { return alpha * x; }

#include "elementwise_main.glsl"
