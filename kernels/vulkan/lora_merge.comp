// merged[o,p] = weight[o,p] + scale * sum_q b[o,q] * a[q,p]; b [out,r] as A, a [r,in] as B, merged [out,in] as C, the weight as
// addend.
#pragma shaders lora_merge_naive16; lora_merge_tiled64 BLOCK=64
#define AFFINE
#define A_TRANSPOSED 0
#define B_TRANSPOSED 0
#include "product.glsl"
