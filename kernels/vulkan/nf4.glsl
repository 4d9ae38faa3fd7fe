// NF4 codes in shaders: bytes are packed in words, the first lowest, and rows of codes begin at a word. Push constants
// hold the codebook of core/nf4.hpp.
const uint BLOCK_SIZE = 64;

bool nf4_counts_as_zero(float absmax) { return (floatBitsToUint(absmax) & 0x7fffffffu) < 0x03800000u; }
/// Returns the scale to multiply with: 0 of its sign below 2^-120, decided by bits, so that nothing is flushed first.
float nf4_scale(float absmax) {
  return nf4_counts_as_zero(absmax) ? uintBitsToFloat(floatBitsToUint(absmax) & 0x80000000u) : absmax;
}
