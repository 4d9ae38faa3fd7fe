// exp for kernels whose arguments may be infinite or NaN.
#define INFINITY uintBitsToFloat(0x7f800000u)

// Returns exp of x <= 0 or NaN: the specification leaves exp(NaN) undefined.
float exp_of(float x) { return isnan(x) ? x : exp(x); }
