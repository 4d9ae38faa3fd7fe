// merged[o,p] = weight[o,p] + scale * sum_q b[o,q] * a[q,p]; b [out,r] as A, a [r,in] as B, merged [out,in] as C, the weight as
// addend.
#define AFFINE
#ifndef A_TRANSPOSED
#define A_TRANSPOSED 0
#endif
#ifndef B_TRANSPOSED
#define B_TRANSPOSED 0
#endif
#include "product.glsl"
