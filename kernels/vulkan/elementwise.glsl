// Maps over the elements of row-major matrices: out[i,j] = f(in0[i,j], in1[i,j]). The including shader defines
// INPUTS (1 or 2), SECOND_IS_F32 if in1 is f32 in every variant, and `float f(float x)` or `float f(float x, float y)`
// between this file and elementwise_main.glsl.
// Element (i, j) of a tensor is at first + i * ld + j; ld = 0 broadcasts a row.
layout(local_size_x_id = 1, local_size_y_id = 2) in;

// True if every row of every tensor starts at a multiple of four elements.
layout(constant_id = 0) const bool VECTORS = false;
layout(set = 0, binding = 0) readonly buffer In0 { STORED in0[]; };
layout(set = 0, binding = 0) readonly buffer In0v { STORED4 in0v[]; };
#if INPUTS == 2
#ifdef SECOND_IS_F32
#define PLAIN(x) (x)
#define STORED_1 float
#define STORED4_1 vec4
#define LOADED_1 PLAIN
#define LOADED4_1 PLAIN
#else
#define STORED_1 STORED
#define STORED4_1 STORED4
#define LOADED_1 LOADED
#define LOADED4_1 LOADED4
#endif
layout(set = 0, binding = 1) readonly buffer In1 { STORED_1 in1[]; };
layout(set = 0, binding = 1) readonly buffer In1v { STORED4_1 in1v[]; };
#endif
layout(set = 0, binding = INPUTS) writeonly buffer Out { STORED result[]; };
layout(set = 0, binding = INPUTS) writeonly buffer Outv { STORED4 resultv[]; };
layout(push_constant) uniform Push {
  uint m, n;
  uint in0_first, in0_ld;
  uint in1_first, in1_ld;
  uint out_first, out_ld;
  float alpha;  // a parameter of the operation
};
