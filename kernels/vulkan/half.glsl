// Decodes a binary16 of either sign with integers: a device may flush subnormals in its own conversion.
float half_value(uint bits) {
  const uint sign = (bits & 0x8000u) << 16, exponent = bits >> 10 & 31u, fraction = bits & 0x3ffu;
  const float tiny = float(fraction) * (1.0 / 16777216.0);  // 2^-24
  const uint magnitude = exponent == 0 ? floatBitsToUint(tiny)
                         : exponent == 31 ? 0x7f800000u | fraction << 13 : (exponent + 112u) << 23 | fraction << 13;
  return uintBitsToFloat(sign | magnitude);
}
