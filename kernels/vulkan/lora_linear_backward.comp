// g = scale dy · B, dx = dy · W, dx += g · A; with A_TRANSPOSED, dA = gᵀ · x and dB = scale dyᵀ · t. Each f32 with rows of
// unit stride.
#pragma shaders lora_linear_backward_naive16; lora_linear_backward_tiled64 BLOCK=64; lora_linear_backward_naive16_tn A_TRANSPOSED=1; lora_linear_backward_tiled64_tn BLOCK=64 A_TRANSPOSED=1
#define AFFINE
#ifndef A_TRANSPOSED
#define A_TRANSPOSED 0
#endif
#define B_TRANSPOSED 0
#include "product.glsl"
