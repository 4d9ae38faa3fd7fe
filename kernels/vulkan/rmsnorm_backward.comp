// Gradient of rmsnorm with respect to x, by the reciprocal RMS that the forward pass saved.
#pragma shaders rmsnorm_backward_rows; rmsnorm_backward_rows_f16 F16; rmsnorm_backward_rows_bf16 BF16
#extension GL_GOOGLE_include_directive : require
#include "rmsnorm_backward.glsl"
