// cache[b,lengths[b] + i,g,c] = x[b,i,g,c]; x [batch,rows,heads,d] and cache with heads dense, moved as bits; lengths
// [batch].
#pragma shaders cache_append_heads; cache_append_heads_16 BITS=uint16_t
#ifdef BITS
#extension GL_EXT_shader_16bit_storage : require
#else
#define BITS uint
#endif
layout(local_size_x = 64) in;

layout(set = 0, binding = 0) readonly buffer X { BITS x[]; };
layout(set = 0, binding = 1) readonly buffer Lengths { int lengths[]; };
layout(set = 0, binding = 2) writeonly buffer Cache { BITS cache[]; };
layout(push_constant) uniform Push {
  uint batch, rows, heads, d;
  uint x_first, x_batch, x_position, x_head;
  uint cache_first, cache_batch, cache_position, cache_head;
  uint lengths_first;
};

void main() {
  const uint elements = batch * rows * heads * d;
  for (uint at = gl_GlobalInvocationID.x; at < elements; at += gl_NumWorkGroups.x * 64) {
    const uint c = at % d, g = at / d % heads, i = at / d / heads % rows, b = at / d / heads / rows;
    const uint place = uint(lengths[lengths_first + b]) + i;
    cache[cache_first + b * cache_batch + place * cache_position + g * cache_head + c] =
        x[x_first + b * x_batch + i * x_position + g * x_head + c];
  }
}
