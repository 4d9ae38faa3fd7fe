// c[i,j] = sum_p a[i,p] * b[p,j]; a [m,k], b [k,n], c [m,n], each f32 with rows of unit stride.
#pragma shaders matmul_naive16; matmul_tiled64 BLOCK=64; matmul_tiled128 BLOCK=128
#define B_TRANSPOSED 0
#define A_TRANSPOSED 0
#include "product.glsl"
