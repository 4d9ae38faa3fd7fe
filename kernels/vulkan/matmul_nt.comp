// c[i,j] = sum_p a[i,p] * b[j,p]; a [m,k], b [n,k], c [m,n], each f32 with rows of unit stride.
#ifndef B_TRANSPOSED
#define B_TRANSPOSED 1
#endif
#define A_TRANSPOSED 0
#include "product.glsl"
