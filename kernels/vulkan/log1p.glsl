// log(1 + z) for z in [0, 1], for which Vulkan has no function: log(1 + z) = 2 atanh(s), s = z / (2 + z) <= 1/3, by its
// series s (1 + s^2 / 3 + s^4 / 5 + ..), truncated after s^16 / 17 with a remainder below 2^-31. Error in units u =
// 2^-24 of the value: 2 + z rounds once and the division errs by 2.5 ULP, 5 u. So s errs by 6 u, which atanh raises by
// at most 1.09. The polynomial's roundings add 0.3 u to the last one, and the two products u each: less than 10 u, 5
// ULP (contracts/numerics.yaml). Below 2^-24 z itself approximates the value within u.
float log1p_of(float z) {
  if (isnan(z) || z < 5.9604645e-8) return z;
  const float s = z / (2.0 + z), w = s * s;
  float p = 0.058823530;
  p = fma(p, w, 0.066666670);
  p = fma(p, w, 0.076923080);
  p = fma(p, w, 0.090909094);
  p = fma(p, w, 0.11111111);
  p = fma(p, w, 0.14285715);
  p = fma(p, w, 0.2);
  p = fma(p, w, 0.33333334);
  p = fma(p, w, 1.0);
  return 2.0 * s * p;
}
