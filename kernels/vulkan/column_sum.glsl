// Sums of columns: 32 columns a workgroup, rows in eight stripes whose sums are added in order. The including shader
// defines load(i, j) and store(j, sum) for batch `batch`.
layout(local_size_x = 32, local_size_y = 8) in;

shared float stripe_sums[8][32];

/// Must be called by every invocation of the workgroup: none may miss a barrier.
void sum_columns(uint batch, uint rows, uint columns) {
  const uint lane = gl_LocalInvocationID.x, stripe = gl_LocalInvocationID.y, j = gl_WorkGroupID.x * 32 + lane;
  float sum = 0;
  if (j < columns)
    for (uint i = stripe; i < rows; i += 8) sum += load(batch, i, j);
  stripe_sums[stripe][lane] = sum;
  barrier();
  if (stripe == 0 && j < columns) {
    float total = 0;
    for (uint s = 0; s < 8; ++s) total += stripe_sums[s][lane];
    store(batch, j, total);
  }
  barrier();
}
