// exp as kernels with infinite and undefined arguments need it.
#define INFINITY uintBitsToFloat(0x7f800000u)

// exp of x <= 0 or NaN: the specification promises nothing of exp(NaN).
float exp_of(float x) { return isnan(x) ? x : exp(x); }
