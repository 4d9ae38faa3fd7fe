// t[i,q] = sum_p x[i,p] * a[q,p], then y[i,o] = sum_p x[i,p] * weight[o,p] + bias[o], then y[i,o] += scale * sum_q
// t[i,q] * b[o,q]: three products with the right factor transposed; the addend is the bias, or y itself.
// In 16 bits, which x, weight, bias and y are in, there are two products: `low` of x, widened, and a, both f32 then, and
// the layer with its adapter, whose sums begin with those of t and b and are rounded once.
#pragma shaders lora_linear_naive16; lora_linear_tiled64 BLOCK=64
#pragma shaders lora_linear_naive16_f16 F16 ADAPTER; lora_linear_naive16_f16_low F16 B_IS_F32 C_IS_F32
#pragma shaders lora_linear_naive16_bf16 BF16 ADAPTER; lora_linear_naive16_bf16_low BF16 B_IS_F32 C_IS_F32
#pragma shaders lora_linear_tiled64_f16 BLOCK=64 F16 ADAPTER
#pragma shaders lora_linear_tiled64_f16_low BLOCK=64 F16 B_IS_F32 C_IS_F32
#pragma shaders lora_linear_tiled64_bf16 BLOCK=64 BF16 ADAPTER
#pragma shaders lora_linear_tiled64_bf16_low BLOCK=64 BF16 B_IS_F32 C_IS_F32
#define AFFINE
#define A_TRANSPOSED 0
#define B_TRANSPOSED 1
#include "product.glsl"
