// y[i,o] = sum_p x[i,p] * weight[o,p] + bias[o]; x [s,in] as A, weight [out,in] as B, y [s,out] as C, the bias as
// addend; each in the variant's format.
#pragma shaders linear_naive16; linear_naive16_f16 F16; linear_naive16_bf16 BF16
#pragma shaders linear_tiled64 BLOCK=64; linear_tiled64_f16 BLOCK=64 F16; linear_tiled64_bf16 BLOCK=64 BF16
#define AFFINE
#define A_TRANSPOSED 0
#define B_TRANSPOSED 1
#include "product.glsl"
