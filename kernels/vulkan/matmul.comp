// c[i,j] = sum_p a[i,p] * b[p,j]; a [m,k], b [k,n], c [m,n], each with rows of unit stride and in
// the variant's format (storage.glsl).
#pragma shaders matmul_naive16; matmul_naive16_f16 F16; matmul_naive16_bf16 BF16
#pragma shaders matmul_tiled64 BLOCK=64; matmul_tiled64_f16 BLOCK=64 F16; matmul_tiled64_bf16 BLOCK=64 BF16
#pragma shaders matmul_tiled128 BLOCK=128
#define B_TRANSPOSED 0
#define A_TRANSPOSED 0
#include "product.glsl"
