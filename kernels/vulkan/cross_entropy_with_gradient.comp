// Losses of rows, their logsumexp, and the gradients of their logits.
#pragma shaders cross_entropy_with_gradient_row; cross_entropy_with_gradient_row_f16 F16
#pragma shaders cross_entropy_with_gradient_row_bf16 BF16
#extension GL_GOOGLE_include_directive : require
#define GRADIENT
#include "cross_entropy.glsl"
