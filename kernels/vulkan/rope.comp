// Rotation of pairs: y1 = x1 cos a - x2 sin a, y2 = x2 cos a + x1 sin a, where a = positions[row] theta^(-2i/d), exact or
// the nearest float. An invocation takes one pair of a row and rotates it in every head. Vulkan promises sin and cos to
// 2^-11 only: here they are polynomials of what an exact phase leaves of its quarter turns (kernels/rope.hpp, octant in
// contracts/numerics.yaml).
// DIRECTION is -1 in the gradient: the rotation back.
#pragma shaders rope_pairs DIRECTION=1.0; rope_pairs_f16 DIRECTION=1.0 F16; rope_pairs_bf16 DIRECTION=1.0 BF16
#pragma shaders rope_backward_pairs DIRECTION=-1.0; rope_backward_pairs_f16 DIRECTION=-1.0 F16
#pragma shaders rope_backward_pairs_bf16 DIRECTION=-1.0 BF16
#extension GL_GOOGLE_include_directive : require
#include "storage.glsl"
layout(local_size_x = 64) in;

layout(set = 0, binding = 0) readonly buffer X { STORED x[]; };
layout(set = 0, binding = 1) writeonly buffer Y { STORED y[]; };
layout(set = 0, binding = 2) readonly buffer Frequencies { uvec4 frequencies[]; };
layout(set = 0, binding = 3) readonly buffer Positions { uint positions[]; };
layout(push_constant) uniform Push {
  uint rows, heads, half_d;
  uint x_first, x_row, x_head, y_first, y_row, y_head;
  uint interleaved, float32_angle, positions_first;
};

// Words 3 and 2 of the low 128 bits of (m1, m0) * f, f in words from x, lowest first.
uvec2 phase_of(uint m1, uint m0, uvec4 f) {
  uint hi, lo, carry, a1, a2, a3;
  umulExtended(m0, f.x, a1, lo);  // word 0 falls off
  umulExtended(m0, f.y, hi, lo);
  a1 = uaddCarry(a1, lo, carry);
  a2 = hi + carry;
  umulExtended(m1, f.x, hi, lo);
  a1 = uaddCarry(a1, lo, carry);
  a2 = uaddCarry(a2, carry, carry);
  a3 = carry;
  a2 = uaddCarry(a2, hi, carry);
  a3 += carry;
  umulExtended(m0, f.z, hi, lo);
  a2 = uaddCarry(a2, lo, carry);
  a3 += hi + carry;
  umulExtended(m1, f.y, hi, lo);
  a2 = uaddCarry(a2, lo, carry);
  a3 += hi + carry;
  return uvec2(a3 + m0 * f.w + m1 * f.z, a2);
}

vec2 octant_cos_sin(float r, uint quarters) {
  const float z = r * r;
  const float s = r + r * z * (-1.6666654611e-1 + z * (8.3321608736e-3 + z * -1.9515295891e-4));
  const float c = 1.0 - (0.5 * z - z * z * (4.166664568298827e-2 + z * (-1.388731625493765e-3 + z * 2.443315711809948e-5)));
  switch (quarters & 3u) {
    case 1: return vec2(-s, c);
    case 2: return vec2(-c, -s);
    case 3: return vec2(s, -c);
    default: return vec2(c, s);
  }
}

// phase (upper, lower word) in units of 2^-64 turns.
vec2 phase_cos_sin(uvec2 phase) {
  const uint quarters = (phase.x + (1u << 29)) >> 30;
  uvec2 rest = uvec2(phase.x - (quarters << 30), phase.y);
  const bool negative = (rest.x & 0x80000000u) != 0;
  if (negative) rest = uvec2(~rest.x + (rest.y == 0 ? 1 : 0), ~rest.y + 1);
  // The 24 highest bits that are not zero, rounded, and how far they stand from the top: a float takes them as they are.
  int shift = rest.x != 0 ? 31 - findMSB(rest.x) : 32 + (rest.y != 0 ? 31 - findMSB(rest.y) : 0);
  uint top = shift == 0 ? rest.x : shift < 32 ? (rest.x << shift) | (rest.y >> (32 - shift)) : rest.y << (shift - 32);
  const float digits = top > 0xffffff7fu ? 16777216.0 : float((top + 0x80u) >> 8);
  // digits * 2^(40 - shift) units of 2 pi 2^-64 = digits * 2^-shift * (2 pi 2^-24).
  float r = digits * uintBitsToFloat(uint(127 - shift) << 23) * uintBitsToFloat(0x34c90fdbu);
  return octant_cos_sin(negative ? -r : r, quarters);
}

vec2 cos_sin(uint i, uint at) {
  const uvec4 f = frequencies[i];
  if (float32_angle == 0) return phase_cos_sin(phase_of(0, at, f));
  const float angle = float(at) * uintBitsToFloat(f.x);
  if (angle <= 0.785398185) return octant_cos_sin(angle, 0);
  // From 1/2 on a float is a multiple of 2^-24: its 24 digits, shifted, and 2^-24 / (2 pi) in units of 2^-128 turns.
  const uint bits = floatBitsToUint(angle);
  const uint digits = (bits & 0x7fffffu) | 0x800000u;
  const uint left = (bits >> 23) - 126;  // 2^(exponent - 23 + 24)
  const uvec2 units = left == 0 ? uvec2(0, digits) : uvec2(digits >> (32 - left), digits << left);
  return phase_cos_sin(phase_of(units.x, units.y, uvec4(0x09d5f47du, 0x91054a7fu, 0xbe60db93u, 0x00000028u)));
}

void main() {
  const uint pairs = rows * half_d;
  for (uint pair = gl_GlobalInvocationID.x; pair < pairs; pair += gl_NumWorkGroups.x * 64) {
    const uint row = pair / half_d, i = pair % half_d;
    const vec2 r = cos_sin(i, positions[positions_first + row]);
    const bool neighbours = interleaved != 0;
    const float c = r.x, s = DIRECTION * r.y;
    const uint first = neighbours ? 2 * i : i, second = neighbours ? 2 * i + 1 : i + half_d;
    for (uint head = 0; head < heads; ++head) {
      const uint from = x_first + row * x_row + head * x_head, to = y_first + row * y_row + head * y_head;
      const float x1 = LOADED(x[from + first]), x2 = LOADED(x[from + second]);
      y[to + first] = STORE(x1 * c - x2 * s);
      y[to + second] = STORE(x2 * c + x1 * s);
    }
  }
}
