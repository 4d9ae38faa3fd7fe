// q[j,p] = number of midpoints m with x[j,p] > m absmax[j, p/64], absmax[j,b] the largest magnitude of block b; x [n,k]
// f32 with rows of unit stride, codes [n, 32 b] bytes in words, absmax [n, b] f32, b = ceil(k/64). Eight invocations a
// block, each with eight elements and a word of codes. Maxima are taken of bits, which order like magnitudes, NaN last.
#pragma shaders nf4_quantize_words
#include "float_controls.glsl"
#include "nf4.glsl"
#extension GL_EXT_control_flow_attributes : require
layout(local_size_x = 8, local_size_y = 8) in;

layout(set = 0, binding = 0) readonly buffer X { uint x[]; };
layout(set = 0, binding = 1) writeonly buffer Codes { uint codes[]; };
layout(set = 0, binding = 2) writeonly buffer Absmax { uint absmax[]; };
layout(push_constant) uniform Push {
  uint n, k;
  uint x_first, x_ld;
  uint codes_first, codes_ld;  // in words
  uint absmax_first, absmax_ld;
  float midpoints[15];
};

shared uint most[8][8];

void main() {
  const uint lane = gl_LocalInvocationID.x, slot = gl_LocalInvocationID.y;
  const uint blocks = (k + BLOCK_SIZE - 1) / BLOCK_SIZE, all = n * blocks;
  // All invocations of a workgroup run the same number of iterations: none may miss a barrier.
  for (uint first = gl_WorkGroupID.x * 8; first < all; first += gl_NumWorkGroups.x * 8) {
    const uint i = first + slot, j = i / blocks, b = i % blocks, p = b * BLOCK_SIZE + lane * 8;
    uint bits[8], largest = 0;
    [[unroll]] for (uint e = 0; e < 8; ++e) {
      bits[e] = i < all && p + e < k ? x[x_first + j * x_ld + p + e] : 0;
      largest = max(largest, bits[e] & 0x7fffffffu);
    }
    most[slot][lane] = largest;
    barrier();
    [[unroll]] for (uint l = 0; l < 8; ++l) largest = max(largest, most[slot][l]);
    barrier();
    if (i < all) {
      const bool nan = largest >= 0x7f800000u;
      const float scale = nan ? 0 : nf4_scale(uintBitsToFloat(largest));
      uint word = 0;
      [[unroll]] for (uint e = 0; e < 8; ++e) {
        const float v = uintBitsToFloat(bits[e]);
        uint code = 0;
        [[unroll]] for (uint m = 0; m < 15; ++m) {
          precise float limit = midpoints[m] * scale;
          if (v > limit) ++code;
        }
        if (scale == 0) code = 7;
        word |= code << (4 * (e ^ 1));  // the earlier of two codes is in the high bits
      }
      codes[codes_first + j * codes_ld + p / 8] = word;
      if (lane == 0) absmax[absmax_first + j * absmax_ld + b] = nan ? 0x7fc00000u : floatBitsToUint(scale);
    }
  }
}
