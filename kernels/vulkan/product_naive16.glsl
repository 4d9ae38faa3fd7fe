// One output per invocation; 16x16 tiles of A and B pass through shared memory. Sums run over p in order.
#extension GL_EXT_control_flow_attributes : require
layout(local_size_x = 16, local_size_y = 16) in;

shared float tile_a[16][16];  // [row][p]
shared float tile_b[16][16];  // [p][column]

float load_a(uint row, uint p) {
#ifdef FAULT_LAST_K_DROPPED
  if (p + 1 == k) return 0;
#endif
  if (row >= m || p >= k) return 0;
#if A_TRANSPOSED
  float x = a[a_first + p * a_ld + row];
#else
  float x = a[a_first + row * a_ld + p];
#endif
#ifdef FAULT_BF16_INPUTS
  x = uintBitsToFloat(floatBitsToUint(x) & 0xffff0000u);
#endif
  return x;
}

float load_b(uint p, uint column) {
  if (p >= k || column >= n) return 0;
#if defined(B_NF4) && B_TRANSPOSED
  return weight(column, p);
#elif defined(B_NF4)
  return weight(p, column);
#elif B_TRANSPOSED
  return b[b_first + column * b_ld + p];
#else
  return b[b_first + p * b_ld + column];
#endif
}

float accumulate(float sum, float x, float y) {
#ifdef FAULT_ZERO_OPERANDS_SKIPPED
  if (x == 0) return sum;
#endif
  return fma(x, y, sum);
}

void main() {
  const uint lx = gl_LocalInvocationID.x, ly = gl_LocalInvocationID.y;
  const uint row = gl_WorkGroupID.y * 16 + ly, column = gl_WorkGroupID.x * 16 + lx;
#ifdef FAULT_EARLY_RETURN
  if (row >= m || column >= n) return;
#endif
#ifdef FAULT_STALE_ACCUMULATOR
  float sum = row < m && column < n ? c[c_first + row * c_ld + column] : 0;
#else
  float sum = 0;
#endif
#ifdef B_NF4
  load_table();
#endif
  for (uint p0 = 0; p0 < k; p0 += 16) {
    tile_a[ly][lx] = load_a(row, p0 + lx);
    tile_b[ly][lx] = load_b(p0 + ly, column);
    barrier();
    [[unroll]] for (uint p = 0; p < 16; ++p) sum = accumulate(sum, tile_a[ly][p], tile_b[p][lx]);
    barrier();
  }
#ifdef FAULT_ROW_PAST_END
  if (row <= m && column < n) c[c_first + row * c_ld + column] = finished(sum, row, column);
#else
  if (row < m && column < n) c[c_first + row * c_ld + column] = finished(sum, row, column);
#endif
}
