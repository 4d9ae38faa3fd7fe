// Gradient of rmsnorm with respect to x, by the reciprocal RMS of x and eps, which it writes for the gradient of weight.
#pragma shaders rmsnorm_eps_backward_rows; rmsnorm_eps_backward_rows_f16 F16; rmsnorm_eps_backward_rows_bf16 BF16
#extension GL_GOOGLE_include_directive : require
#define OWN_RRMS
#include "rmsnorm_backward.glsl"
