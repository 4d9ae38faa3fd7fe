// y[i,o] = sum_p x[i,p] * weight[o,p] + bias[o]; x [s,in] as A, weight [out,in] as B, y [s,out] as C, the bias as addend.
#pragma shaders linear_naive16; linear_tiled64 BLOCK=64
#define AFFINE
#define A_TRANSPOSED 0
#define B_TRANSPOSED 1
#include "product.glsl"
