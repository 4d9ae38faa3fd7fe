// dst[i,j] += alpha src[i,j], fused; dst is bound as input and as output, and every invocation reads only what it
// writes.
#pragma shaders accumulate_vectors
#include "storage.glsl"
#define INPUTS 2
#include "elementwise.glsl"

float f(float dst, float src) { return fma(alpha, src, dst); }

#include "elementwise_main.glsl"
