// c[i,j] = sum_p a[p,i] * b[p,j]; a [k,m], b [k,n], c [m,n], each f32 with rows of unit stride.
#pragma shaders matmul_tn_naive16; matmul_tn_tiled64 BLOCK=64; matmul_tn_tiled128 BLOCK=128
#define A_TRANSPOSED 1
#define B_TRANSPOSED 0
#include "product.glsl"
