// Tensors in the storage format of a shader's variant: f32, or with F16 or BF16 defined 16-bit formats, which are
// widened and rounded to nearest even by integer operations: a device may flush subnormals in its own conversions.
// STORED and STORED4 are the elements of buffers; LOADED, LOADED4 and STORE, STORE4 convert between them and floats.
#if defined(F16) || defined(BF16)
#extension GL_EXT_shader_16bit_storage : require
#endif
#include "float_controls.glsl"

#if defined(F16)
#include "half.glsl"
float widen(uint bits) { return half_value(bits); }
uint narrow(float x) {
  const uint bits = floatBitsToUint(x), sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return sign | 0x7e00u | magnitude >> 13 & 0x1ffu;
  if (magnitude >= 0x477ff000u) return sign | 0x7c00u;  // from 65520 on
  // Ties of normal numbers; the exponent's bias falls from 127 to 15.
  if (magnitude >= 0x38800000u) return sign | magnitude + 0xfffu + (magnitude >> 13 & 1u) - 0x38000000u >> 13;
  if (magnitude < 0x33000000u) return sign;  // below 2^-25
  const uint fraction = magnitude & 0x7fffffu | 0x800000u, shift = 126u - (magnitude >> 23);
  const uint units = fraction >> shift, rest = fraction & (1u << shift) - 1u, half_unit = 1u << shift - 1u;
  return sign | units + (rest > half_unit || rest == half_unit && (units & 1u) == 1u ? 1u : 0u);
}
#elif defined(BF16)
float widen(uint bits) { return uintBitsToFloat(bits << 16); }
uint narrow(float x) {
  const uint bits = floatBitsToUint(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return bits >> 16 | 0x40u;
  return bits + 0x7fffu + (bits >> 16 & 1u) >> 16;
}
#endif

#if defined(F16) || defined(BF16)
vec4 widen4(uvec4 v) { return vec4(widen(v.x), widen(v.y), widen(v.z), widen(v.w)); }
uvec4 narrow4(vec4 v) { return uvec4(narrow(v.x), narrow(v.y), narrow(v.z), narrow(v.w)); }
#define STORED uint16_t
#define STORED4 u16vec4
#define LOADED(x) widen(uint(x))
#define LOADED4(x) widen4(uvec4(x))
#define STORE(x) uint16_t(narrow(x))
#define STORE4(x) u16vec4(narrow4(x))
#else
#define STORED float
#define STORED4 vec4
#define LOADED(x) (x)
#define LOADED4(x) (x)
#define STORE(x) (x)
#define STORE4(x) (x)
#endif
