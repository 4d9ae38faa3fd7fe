// y[i,o] = sum_p x[i,p] * weight[o,p] + bias[o]; x [s,in] as A, weight [out,in] as B, y [s,out] as C, the bias as addend.
#define AFFINE
#ifndef B_TRANSPOSED
#define B_TRANSPOSED 1
#endif
#define A_TRANSPOSED 0
#include "product.glsl"
