// dx[i,p] = sum_j dy[i,j] * w[j,p]; dy [m,n], dx [m,k], each f32 with rows of unit stride; w [n,k] in NF4 codes.
#define A_TRANSPOSED 0
#ifndef B_TRANSPOSED
#define B_TRANSPOSED 0
#endif
#define B_NF4
#include "product.glsl"
