// c[i,j] = sum_p a[i,p] * b[p,j]; a [m,k], b [k,n], c [m,n], each f32 with rows of unit stride.
#ifndef B_TRANSPOSED
#define B_TRANSPOSED 0
#endif
#define A_TRANSPOSED 0
#include "product.glsl"
