// t[i,q] = sum_p x[i,p] * a[q,p], then y[i,o] = sum_p x[i,p] * weight[o,p] + bias[o], then y[i,o] += scale * sum_q
// t[i,q] * b[o,q]: three products with the right factor transposed; the addend is the bias, or y itself.
#pragma shaders lora_linear_naive16; lora_linear_tiled64 BLOCK=64
#define AFFINE
#define A_TRANSPOSED 0
#define B_TRANSPOSED 1
#include "product.glsl"
