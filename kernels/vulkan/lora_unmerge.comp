// weight[o,p] = merged[o,p] - scale * sum_q b[o,q] * a[q,p]; b [out,r] as A, a [r,in] as B, weight [out,in] as C,
// merged as addend. The launcher negates the scale.
#pragma shaders lora_unmerge_naive16; lora_unmerge_tiled64 BLOCK=64
#define AFFINE
#define A_TRANSPOSED 0
#define B_TRANSPOSED 0
#include "product.glsl"
