// y[t,j] = table[ids[t],j]; table [v,h] and y [t,h] with rows of unit stride, moved as bits; ids [t].
#pragma shaders embedding_vectors; embedding_vectors_16 F16
#ifdef F16
#extension GL_EXT_shader_16bit_storage : require
#define BITS uint16_t
#define BITS4 u16vec4
#else
#define BITS uint
#define BITS4 uvec4
#endif
layout(local_size_x = 32, local_size_y = 8) in;

// True if every row of table and of y starts at a multiple of four elements.
layout(constant_id = 0) const bool VECTORS = false;
layout(set = 0, binding = 0) readonly buffer Ids { int ids[]; };
layout(set = 0, binding = 1) readonly buffer Table { BITS table[]; };
layout(set = 0, binding = 1) readonly buffer Tablev { BITS4 tablev[]; };
layout(set = 0, binding = 2) writeonly buffer Y { BITS y[]; };
layout(set = 0, binding = 2) writeonly buffer Yv { BITS4 yv[]; };
layout(push_constant) uniform Push {
  uint t, h;
  uint ids_first;
  uint table_first, table_ld;
  uint y_first, y_ld;
};

void main() {
  const uint width = VECTORS ? 4 : 1;
  for (uint token = gl_GlobalInvocationID.y; token < t; token += gl_NumWorkGroups.y * 8) {
    const uint row = table_first + ids[ids_first + token] * table_ld;
    for (uint j = gl_GlobalInvocationID.x * width; j < h; j += gl_NumWorkGroups.x * 32 * width) {
      const uint at = y_first + token * y_ld + j;
      if (VECTORS && j + 4 <= h) yv[at >> 2] = tablev[(row + j) >> 2];
      else
        for (uint l = 0; l < min(width, h - j); ++l) y[at + l] = table[row + j + l];
    }
  }
}
