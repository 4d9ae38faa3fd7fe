// One output per invocation; 16x16 tiles of A and B pass through shared memory. Sums run over p in order.
#extension GL_EXT_control_flow_attributes : require
layout(local_size_x = 16, local_size_y = 16) in;

shared float tile_a[16][16];  // [row][p]
shared float tile_b[16][16];  // [p][column]

float load_a(uint row, uint p) {
  if (row >= m || p >= k) return 0;
#ifdef ADAPTER
  if (p < low_terms) {
    if (p >= rank) return 0;
    return low[low_first + row * low_ld + p];
  }
  p -= low_terms;
#endif
#if A_TRANSPOSED
  return LOADED_A(a[a_first + p * a_ld + row]);
#else
  return LOADED_A(a[a_first + row * a_ld + p]);
#endif
}

float load_b(uint p, uint column) {
  if (p >= k || column >= n) return 0;
#ifdef ADAPTER
  if (p < low_terms) {
    if (p >= rank) return 0;
#if B_TRANSPOSED
    return factor[factor_first + column * factor_ld + p];
#else
    return factor[factor_first + p * factor_ld + column];
#endif
  }
  p -= low_terms;
#endif
#if defined(B_PACKED) && B_TRANSPOSED
  return weight(column, p);
#elif defined(B_PACKED)
  return weight(p, column);
#elif B_TRANSPOSED
  return LOADED_B(b[b_first + column * b_ld + p]);
#else
  return LOADED_B(b[b_first + p * b_ld + column]);
#endif
}

float accumulate(float sum, float x, float y) {
  return fma(x, y, sum);
}

void main() {
  const uint lx = gl_LocalInvocationID.x, ly = gl_LocalInvocationID.y;
  const uint row = gl_WorkGroupID.y * 16 + ly, column = gl_WorkGroupID.x * 16 + lx;
  float sum = 0;
#ifdef B_PACKED
  load_table();
#endif
  for (uint p0 = 0; p0 < k; p0 += 16) {
    tile_a[ly][lx] = load_a(row, p0 + lx);
    tile_b[ly][lx] = load_b(p0 + ly, column);
    barrier();
    [[unroll]] for (uint p = 0; p < 16; ++p) sum = accumulate(sum, tile_a[ly][p], tile_b[p][lx]);
    barrier();
#ifdef ADAPTER
    if (p0 + 16 == low_terms) sum *= low_scale;
#endif
  }
  if (row < m && column < n) c[c_first + row * c_ld + column] = STORE_C(finished(sum, row, column));
}
