// Q4_K super-blocks of x [rows,k] f32 with rows of unit stride; blocks: rows of super-blocks, as words. 32 invocations a
// super-block, two super-blocks a workgroup; eight neighbouring values an invocation, so that four hold a sub-block.
#pragma shaders q4_k_quantize_cooperative
#extension GL_GOOGLE_include_directive : require
#include "float_controls.glsl"
layout(local_size_x = 64) in;

layout(set = 0, binding = 0) readonly buffer X { float x[]; };
layout(set = 0, binding = 1) writeonly buffer Blocks { uint blocks[]; };
layout(push_constant) uniform Push {
  uint rows, k;
  uint x_first, x_ld;
  uint blocks_first, blocks_ld;
};
#include "half.glsl"

shared float lows[64], highs[64];
shared uint undefined[64], scales[64], codes[128];

// Returns the smallest half h >= 0 with factor h >= reach, or infinity. The quotient may be off by a few roundings: it
// is truncated to a half at most two below, and comparisons of exact products correct it.
uint smallest_half(float factor, float reach) {
  const float near = min(reach / factor, 65504.0);
  uint h = near >= 1.0 / 16384.0 ? (floatBitsToUint(near) >> 13) - (112u << 10) : uint(near * 16777216.0);
  while (h < 0x7c00u && factor * half_value(h) < reach) ++h;
  return h;
}

// Returns the smallest s with s step >= reach.
uint smallest_code(float step, float reach) {
  if (!(reach > 0)) return 0;
  const uint s = min(uint(reach / step), 63u);
  return s < 63 && float(s) * step < reach ? s + 1 : s;
}

// Returns the code q with q step nearest to v; ties go to the smaller.
uint nearest_code(float step, float v) {
  if (!(step > 0)) return 0;
  const uint q = min(uint(v / step + 0.5), 15u);
  if (q > 0 && float(2 * q - 1) * step >= 2 * v) return q - 1;
  if (q < 15 && float(2 * q + 1) * step < 2 * v) return q + 1;
  return q;
}

void main() {
  const uint lane = gl_LocalInvocationID.x & 31u, base = gl_LocalInvocationID.x & 32u, own = gl_LocalInvocationID.x & 60u;
  const uint count = (k + 255) / 256;
  // All invocations of a workgroup run the same number of iterations: none may miss a barrier.
  for (uint i = gl_WorkGroupID.y; i < rows; i += gl_NumWorkGroups.y)
    for (uint pair = gl_WorkGroupID.x; 2 * pair < count; pair += gl_NumWorkGroups.x) {
      const uint block = 2 * pair + base / 32, row = x_first + i * x_ld, first = block * 256 + 8 * lane;
      const float beyond = x[row + k - 1];
      float v[8], lowest = 0, highest = -3.4028235e38;
      bool finite = true;
      for (uint t = 0; t < 8; ++t) {
        v[t] = first + t < k ? x[row + first + t] : beyond;
        const uint exponent = floatBitsToUint(v[t]) & 0x7f800000u;
        finite = finite && exponent != 0x7f800000u;
        if (exponent == 0) v[t] = 0;
        lowest = v[t] < lowest ? v[t] : lowest;
        highest = v[t] > highest ? v[t] : highest;
      }
      barrier();  // the values of the previous iteration have been read
      lows[gl_LocalInvocationID.x] = lowest < 0 ? -lowest : 0;
      highs[gl_LocalInvocationID.x] = highest;
      undefined[gl_LocalInvocationID.x] = finite ? 0 : 1;
      barrier();
      float low = 0, depth = 0;
      for (uint t = 0; t < 4; ++t) {
        low = max(low, lows[own + t]);
        highest = max(highest, highs[own + t]);
      }
      bool defined = true;
      for (uint t = 0; t < 32; ++t) {
        depth = max(depth, lows[base + t]);
        defined = defined && undefined[base + t] == 0;
      }
      const uint dmin = smallest_half(63, depth);
      defined = defined && dmin < 0x7c00u;
      const uint minimum_code = defined ? smallest_code(half_value(dmin), low) : 0;
      const float minimum = defined ? half_value(dmin) * float(minimum_code) : 0;
      const float reach = highest + minimum;
      barrier();
      highs[gl_LocalInvocationID.x] = reach;
      barrier();
      float most = 0;
      for (uint t = 0; t < 32; t += 4) most = max(most, highs[base + t]);
      const uint d = smallest_half(945, most);
      defined = defined && d < 0x7c00u;
      uint scale_code = 0, low_word = 0, high_word = 0;
      if (defined) {
        scale_code = smallest_code(15 * half_value(d), reach);
        const float step = half_value(d) * float(scale_code);
        for (uint t = 0; t < 4; ++t) {
          low_word |= nearest_code(step, v[t] + minimum) << 8 * t;
          high_word |= nearest_code(step, v[4 + t] + minimum) << 8 * t;
        }
      }
      scales[gl_LocalInvocationID.x] = scale_code | minimum_code << 8;
      codes[2 * gl_LocalInvocationID.x] = low_word;
      codes[2 * gl_LocalInvocationID.x + 1] = high_word;
      barrier();
      if (block >= count) continue;
      const uint to = blocks_first + i * blocks_ld + block * 36;
      // Word l of the codes: low nibbles of values from 64 (l / 8) + 4 (l mod 8) on, high nibbles of values 32 further
      // on.
      const uint at = 2 * base + (lane >> 3) * 16 + (lane & 7u);
      blocks[to + 4 + lane] = codes[at] | codes[at + 8] << 4;
      if (lane > 3) continue;
      uint word = lane > 0 ? 0 : defined ? d | dmin << 16 : 0x7e00u;
      for (uint b = 0; defined && lane > 0 && b < 4; ++b) {
        const uint one = scales[base + 4 * b], two = scales[base + 16 + 4 * b];
        if (lane == 1) word |= ((one & 63u) | (two >> 4 & 3u) << 6) << 8 * b;
        else if (lane == 2) word |= (one >> 8 | two >> 12 << 6) << 8 * b;
        else word |= ((two & 15u) | (two >> 8 & 15u) << 4) << 8 * b;
      }
      blocks[to + lane] = word;
    }
}
