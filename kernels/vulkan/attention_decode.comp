// Appends k and v [batch,kv_heads,d] at place lengths[b] of the caches [batch,capacity,kv_heads,d]; then y[b,h] = sum_j
// p_j v_cache[b,j,g], p = softmax(scale q[b,h] . k_cache[b,j,g]) over j <= lengths[b], g = h / group; q, y
// [batch,heads,d]. All in the variant's format (storage.glsl), heads dense. A workgroup takes up to four heads that
// share keys and values, 64 places at a time, with an online softmax. The new row is read from k and v, so that no
// workgroup waits for it to be appended; it is appended as BITS, unsigned integers as wide as an element.
#pragma shaders attention_decode_tiles BITS=uint
#pragma shaders attention_decode_tiles_f16 F16 BITS=uint16_t; attention_decode_tiles_bf16 BF16 BITS=uint16_t
#include "storage.glsl"
#include "vectors.glsl"
layout(local_size_x = 128) in;

layout(constant_id = 0) const bool ALIGNED = false;  // every head of every tensor starts at a multiple of 4 elements
layout(set = 0, binding = 0) readonly buffer Q { STORED q[]; };
layout(set = 0, binding = 0) readonly buffer Q4 { STORED4 q4[]; };
layout(set = 0, binding = 1) readonly buffer K { STORED k[]; };
layout(set = 0, binding = 1) readonly buffer K4 { STORED4 k4[]; };
layout(set = 0, binding = 1) readonly buffer KBits { BITS k_bits[]; };
layout(set = 0, binding = 2) readonly buffer V { STORED v[]; };
layout(set = 0, binding = 2) readonly buffer V4 { STORED4 v4[]; };
layout(set = 0, binding = 2) readonly buffer VBits { BITS v_bits[]; };
layout(set = 0, binding = 3) readonly buffer Lengths { int lengths[]; };
layout(set = 0, binding = 4) buffer KCache { STORED k_cache[]; };
layout(set = 0, binding = 4) buffer KCache4 { STORED4 k_cache4[]; };
layout(set = 0, binding = 4) buffer KCacheBits { BITS k_cache_bits[]; };
layout(set = 0, binding = 5) buffer VCache { STORED v_cache[]; };
layout(set = 0, binding = 5) buffer VCache4 { STORED4 v_cache4[]; };
layout(set = 0, binding = 5) buffer VCacheBits { BITS v_cache_bits[]; };
layout(set = 0, binding = 6) writeonly buffer Y { STORED y[]; };
layout(set = 0, binding = 6) writeonly buffer Y4 { STORED4 y4[]; };
layout(push_constant) uniform Push {
  uint group, chunks, d;
  float scale;
  uint lengths_first;
  uint q_first, q_batch, q_head;
  uint k_first, k_batch, k_head;
  uint v_first, v_batch, v_head;
  uint k_cache_first, k_cache_batch, k_cache_place, k_cache_head;
  uint v_cache_first, v_cache_batch, v_cache_place, v_cache_head;
  uint y_first, y_batch, y_head;
};

#define HEADS 4
#define PLACES 64
#define MASKED uintBitsToFloat(0xff800000u)  // -inf
// GLSL's max may discard a NaN; LARGER keeps a NaN in its left operand.
#define LARGER(a, b) ((a) < (b) ? (b) : (a))

shared vec4 query[HEADS][64];
shared float halves[HEADS][PLACES][2];
shared float weight[HEADS][PLACES];
shared float reduced[HEADS][32];
shared vec4 parts[128];

DEFINE_LOAD4_STORED(load_q, q, q4, ALIGNED)
DEFINE_LOAD4_STORED(load_k, k, k4, ALIGNED)
DEFINE_LOAD4_STORED(load_v, v, v4, ALIGNED)
DEFINE_LOAD4_STORED(load_k_cache, k_cache, k_cache4, ALIGNED)
DEFINE_LOAD4_STORED(load_v_cache, v_cache, v_cache4, ALIGNED)
DEFINE_STORE4_STORED(store_y, y, y4, ALIGNED)

// Reduces the 32 values of each head by a tree; all invocations get the same bits. Every invocation takes part.
#define DEFINE_REDUCE(name, COMBINE)                                                                                \
  float name(float value) {                                                                                         \
    const uint h = gl_LocalInvocationID.x / 32, lane = gl_LocalInvocationID.x % 32;                                 \
    barrier(); /* previous reduction's value has been read */                                                       \
    reduced[h][lane] = value;                                                                                       \
    barrier();                                                                                                      \
    for (uint width = 16; width > 0; width >>= 1) {                                                                 \
      if (lane < width) reduced[h][lane] = COMBINE(reduced[h][lane], reduced[h][lane + width]);                     \
      barrier();                                                                                                    \
    }                                                                                                               \
    return reduced[h][0];                                                                                           \
  }
#define PLUS(a, b) ((a) + (b))
DEFINE_REDUCE(sum_of_head, PLUS)
DEFINE_REDUCE(largest_of_head, LARGER)

// Returns exp(x - shift). exp(NaN) is driver-defined, so NaN bypasses exp.
float power(float x, float shift) {
  const float below = x - shift;
  return below != below ? below : exp(below);
}

void main() {
  const uint own = gl_LocalInvocationID.x, b = gl_WorkGroupID.y;
  const uint g = gl_WorkGroupID.x / chunks, in_group = gl_WorkGroupID.x % chunks * HEADS;
  const uint heads = min(group - in_group, HEADS), h0 = g * group + in_group;
  const uint last = uint(lengths[lengths_first + b]);
  const uint new_key = k_first + b * k_batch + g * k_head, new_value = v_first + b * v_batch + g * v_head;
  const uint keys = k_cache_first + b * k_cache_batch + g * k_cache_head;
  const uint values = v_cache_first + b * v_cache_batch + g * v_cache_head;
  if (in_group == 0)
    for (uint c = own; c < d; c += 128) {
      k_cache_bits[keys + last * k_cache_place + c] = k_bits[new_key + c];
      v_cache_bits[values + last * v_cache_place + c] = v_bits[new_value + c];
    }
  for (uint e = own; e < HEADS * 64; e += 128) {
    const uint h = e / 64, c = e % 64 * 4;
    query[h][e % 64] = h < heads && c < d ? scale * load_q(q_first + b * q_batch + (h0 + h) * q_head + c, d - c) : vec4(0);
  }
  uint width = 8;  // invocations that share a value's elements, four each
  while (4 * width < d) width *= 2;
  const uint slot = own / width, slots = 128 / width, column = own % width * 4;
  // The head that this invocation weighs is own / 32.
  const uint weighed = own / 32, lane = own % 32;
  float largest = MASKED, total = 0;
  vec4 sum[HEADS];
  for (uint h = 0; h < HEADS; ++h) sum[h] = vec4(0);
  barrier();

  const uint end = last + 1;
  for (uint tile = 0; tile < end; tile += PLACES) {
    const uint places = min(end - tile, PLACES);
    const uint j = own / 2;  // two invocations a place, every other four elements each
    float dots[HEADS];
    for (uint h = 0; h < HEADS; ++h) dots[h] = 0;
    if (j < places) {
      const bool is_new = tile + j == last;
      const uint key = keys + (tile + j) * k_cache_place;
      for (uint c = own % 2 * 4; c < d; c += 8) {
        const vec4 x = is_new ? load_k(new_key + c, d - c) : load_k_cache(key + c, d - c);
        for (uint h = 0; h < HEADS; ++h) {
          const vec4 p = x * query[h][c / 4];
          dots[h] += (p.x + p.y) + (p.z + p.w);
        }
      }
    }
    for (uint h = 0; h < HEADS; ++h) halves[h][j][own % 2] = dots[h];
    barrier();  // every half is ready
    const float first = lane < places ? halves[weighed][lane][0] + halves[weighed][lane][1] : MASKED;
    const float second = lane + 32 < places ? halves[weighed][lane + 32][0] + halves[weighed][lane + 32][1] : MASKED;
    const float of_tile = largest_of_head(LARGER(first, second));
    const float grown = LARGER(largest, of_tile), shift = grown == MASKED ? 0 : grown;
    const float w = power(first, shift), x = power(second, shift);
    weight[weighed][lane] = w;
    weight[weighed][lane + 32] = x;
    // Before the first score above -inf the sums hold 0, or NaN from non-finite scores.
    const float rescale = largest < grown && largest > MASKED ? power(largest, grown) : 1;
    const float of_weights = sum_of_head(w + x);
    total = total * rescale + of_weights;
    largest = grown;
    barrier();  // the sum has been read
    if (lane == 0) reduced[weighed][0] = rescale;
    barrier();
    for (uint h = 0; h < HEADS; ++h) sum[h] *= reduced[h][0];
    if (column < d)
      for (uint p = slot; p < places; p += slots) {
        const vec4 value = tile + p == last ? load_v(new_value + column, d - column)
                                            : load_v_cache(values + (tile + p) * v_cache_place + column, d - column);
        for (uint h = 0; h < HEADS; ++h) sum[h] += weight[h][p] * value;
      }
    barrier();  // before the next tile's scores and weights
  }

  if (lane == 0) reduced[weighed][0] = total;
  for (uint h = 0; h < HEADS; ++h) {
    parts[own] = sum[h];
    barrier();
    if (h < heads && slot == 0 && column < d) {
      vec4 all = parts[own];
      for (uint s = 1; s < slots; ++s) all += parts[s * width + own];
      const float of_head = reduced[h][0];
      all = of_head == 0 ? vec4(0) : all / of_head;
      store_y(y_first + b * y_batch + (h0 + h) * y_head + column, d - column, all);
    }
    barrier();
  }
}
