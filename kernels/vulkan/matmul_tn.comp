// c[i,j] = sum_p a[p,i] * b[p,j]; a [k,m], b [k,n], c [m,n], each with rows of unit stride; a and b
// in the variant's format (storage.glsl), c f32.
#pragma shaders matmul_tn_naive16; matmul_tn_naive16_f16 F16; matmul_tn_naive16_bf16 BF16
#pragma shaders matmul_tn_tiled64 BLOCK=64; matmul_tn_tiled64_f16 BLOCK=64 F16; matmul_tn_tiled64_bf16 BLOCK=64 BF16
#pragma shaders matmul_tn_tiled128 BLOCK=128
#define C_IS_F32
#define A_TRANSPOSED 1
#define B_TRANSPOSED 0
#include "product.glsl"
