// NF4 codes as shaders read them: bytes lie in words, the first lowest, and rows of codes begin with a word. The codebook
// comes in push constants, from core/nf4.hpp.
const uint BLOCK_SIZE = 64;

bool nf4_counts_as_zero(float absmax) { return (floatBitsToUint(absmax) & 0x7fffffffu) < 0x03800000u; }
/// A scale as it multiplies: 0 of its sign below 2^-120, by its bits, so that nothing is flushed before it is seen.
float nf4_scale(float absmax) {
  return nf4_counts_as_zero(absmax) ? uintBitsToFloat(floatBitsToUint(absmax) & 0x80000000u) : absmax;
}
