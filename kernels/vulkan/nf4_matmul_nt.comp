// y[i,j] = sum_p x[i,p] * w[j,p]; x [m,k], y [m,n], each f32 with rows of unit stride; w [n,k] in NF4 codes.
#define A_TRANSPOSED 0
#ifndef B_TRANSPOSED
#define B_TRANSPOSED 1
#endif
#define B_NF4
#include "product.glsl"
