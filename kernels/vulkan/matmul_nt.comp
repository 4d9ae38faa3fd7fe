// c[i,j] = sum_p a[i,p] * b[j,p]; a [m,k], b [n,k], c [m,n], each f32 with rows of unit stride.
#pragma shaders matmul_nt_naive16; matmul_nt_tiled64 BLOCK=64; matmul_nt_tiled128 BLOCK=128
#define B_TRANSPOSED 1
#define A_TRANSPOSED 0
#include "product.glsl"
