// Losses of rows and their logsumexp.
#pragma shaders cross_entropy_row; cross_entropy_row_f16 F16; cross_entropy_row_bf16 BF16
#extension GL_GOOGLE_include_directive : require
#include "cross_entropy.glsl"
