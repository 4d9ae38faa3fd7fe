// y[i,j] = sum_p x[i,p] * w[j,p]; x [m,k], y [m,n], each f32 with rows of unit stride; w [n,k] in Q4_K super-blocks.
#pragma shaders q4_k_matmul_nt_naive16; q4_k_matmul_nt_tiled64 BLOCK=64
#define A_TRANSPOSED 0
#define B_TRANSPOSED 1
#define B_Q4_K
#include "product.glsl"
