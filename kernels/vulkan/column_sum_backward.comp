// dx[i,j] = dy[j]; the leading dimension of dy is 0.
#pragma shaders column_sum_backward_vectors
#include "storage.glsl"
#define INPUTS 1
#include "elementwise.glsl"

float f(float dy) { return dy; }

#include "elementwise_main.glsl"
