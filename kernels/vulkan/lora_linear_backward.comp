// g = scale dy · B, dx = dy · W, dx += g · A; with A_TRANSPOSED, dA = gᵀ · x and dB = scale dyᵀ · t. Each f32 with rows of
// unit stride.
#define AFFINE
#ifndef A_TRANSPOSED
#define A_TRANSPOSED 0
#endif
#define B_TRANSPOSED 0
#include "product.glsl"
