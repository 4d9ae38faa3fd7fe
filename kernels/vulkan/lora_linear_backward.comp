// g = scale dy · B, dx = dy · W, dx += g · A; with A_TRANSPOSED, dA = gᵀ · x and dB = scale dyᵀ · t. Each f32 with rows of
// unit stride.
// In 16 bits, which x, W, dy and dx are in, dx is one product, whose sums begin with those of g and A and are rounded
// once; `low` is g, and the three products but dx have f32 sums of one widened factor and one f32 factor.
#pragma shaders lora_linear_backward_naive16; lora_linear_backward_tiled64 BLOCK=64; lora_linear_backward_naive16_tn A_TRANSPOSED=1; lora_linear_backward_tiled64_tn BLOCK=64 A_TRANSPOSED=1
#pragma shaders lora_linear_backward_naive16_f16 F16 ADAPTER
#pragma shaders lora_linear_backward_naive16_f16_low F16 B_IS_F32 C_IS_F32
#pragma shaders lora_linear_backward_naive16_f16_da F16 A_TRANSPOSED=1 A_IS_F32 C_IS_F32
#pragma shaders lora_linear_backward_naive16_f16_db F16 A_TRANSPOSED=1 B_IS_F32 C_IS_F32
#pragma shaders lora_linear_backward_naive16_bf16 BF16 ADAPTER
#pragma shaders lora_linear_backward_naive16_bf16_low BF16 B_IS_F32 C_IS_F32
#pragma shaders lora_linear_backward_naive16_bf16_da BF16 A_TRANSPOSED=1 A_IS_F32 C_IS_F32
#pragma shaders lora_linear_backward_naive16_bf16_db BF16 A_TRANSPOSED=1 B_IS_F32 C_IS_F32
#pragma shaders lora_linear_backward_tiled64_f16 BLOCK=64 F16 ADAPTER
#pragma shaders lora_linear_backward_tiled64_f16_low BLOCK=64 F16 B_IS_F32 C_IS_F32
#pragma shaders lora_linear_backward_tiled64_f16_da BLOCK=64 F16 A_TRANSPOSED=1 A_IS_F32 C_IS_F32
#pragma shaders lora_linear_backward_tiled64_f16_db BLOCK=64 F16 A_TRANSPOSED=1 B_IS_F32 C_IS_F32
#pragma shaders lora_linear_backward_tiled64_bf16 BLOCK=64 BF16 ADAPTER
#pragma shaders lora_linear_backward_tiled64_bf16_low BLOCK=64 BF16 B_IS_F32 C_IS_F32
#pragma shaders lora_linear_backward_tiled64_bf16_da BLOCK=64 BF16 A_TRANSPOSED=1 A_IS_F32 C_IS_F32
#pragma shaders lora_linear_backward_tiled64_bf16_db BLOCK=64 BF16 A_TRANSPOSED=1 B_IS_F32 C_IS_F32
#define AFFINE
#ifndef A_TRANSPOSED
#define A_TRANSPOSED 0
#endif
#define B_TRANSPOSED 0
#include "product.glsl"
