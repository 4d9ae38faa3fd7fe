// c[i,j] = sum_p a[p,i] * b[p,j]; a [k,m], b [k,n], c [m,n], each f32 with rows of unit stride.
#ifndef A_TRANSPOSED
#define A_TRANSPOSED 1
#endif
#define B_TRANSPOSED 0
#include "product.glsl"
