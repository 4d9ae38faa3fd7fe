// The loops of a map (elementwise.glsl): invocations in x walk columns, invocations in y walk rows.
#if INPUTS == 2
#define AT(p, q) f(LOADED(in0[p]), LOADED_1(in1[q]))
vec4 vector_at(uint p, uint q) {
  const vec4 x = LOADED4(in0v[p]), y = LOADED4_1(in1v[q]);
  return vec4(f(x.x, y.x), f(x.y, y.y), f(x.z, y.z), f(x.w, y.w));
}
#else
#define AT(p, q) f(LOADED(in0[p]))
vec4 vector_at(uint p, uint q) {
  const vec4 x = LOADED4(in0v[p]);
  return vec4(f(x.x), f(x.y), f(x.z), f(x.w));
}
#endif

void main() {
  const uint width = VECTORS ? 4 : 1;
  const uint column_step = gl_NumWorkGroups.x * gl_WorkGroupSize.x * width, row_step = gl_NumWorkGroups.y * gl_WorkGroupSize.y;
  for (uint i = gl_GlobalInvocationID.y; i < m; i += row_step) {
    const uint p = in0_first + i * in0_ld, q = in1_first + i * in1_ld, r = out_first + i * out_ld;
    for (uint j = gl_GlobalInvocationID.x * width; j < n; j += column_step) {
      if (VECTORS && j + 4 <= n) resultv[(r + j) >> 2] = STORE4(vector_at((p + j) >> 2, (q + j) >> 2));
      else
        for (uint l = j; l < min(j + width, n); ++l) result[r + l] = STORE(AT(p + l, q + l));
    }
  }
}
