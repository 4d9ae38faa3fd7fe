// dx[i,p] = sum_j dy[i,j] * w[j,p]; dy [m,n], dx [m,k], each f32 with rows of unit stride; w [n,k] in NF4 codes.
#pragma shaders nf4_matmul_naive16; nf4_matmul_tiled64 BLOCK=64
#define A_TRANSPOSED 0
#define B_TRANSPOSED 0
#define B_NF4
#include "product.glsl"
