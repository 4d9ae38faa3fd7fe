// y[i,j] = sum_p x[i,p] * w[j,p]; x [m,k], y [m,n], each f32 with rows of unit stride; w [n,k] in NF4 codes.
#pragma shaders nf4_matmul_nt_naive16; nf4_matmul_nt_tiled64 BLOCK=64
#define A_TRANSPOSED 0
#define B_TRANSPOSED 1
#define B_NF4
#include "product.glsl"
