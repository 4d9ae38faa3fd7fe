/* RMSNorm in plain C with its own order of arguments; rmsnorm.yaml is its shim. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* y[i][j] = x[i][j] / sqrt(mean(x[i]^2) + eps) * weight[j]; writes the reciprocal root to `saved` if that is not NULL.
 * x and y have rows of x_stride and y_stride elements, of which n are used. Returns 0. */
int rms_normalize(float* y, int64_t y_stride, const float* x, int64_t x_stride, const float* weight, double eps,
                  int rows, int n, float* saved) {
  for (int i = 0; i < rows; ++i) {
    const float* in = x + i * x_stride;
    float* out = y + i * y_stride;
    float sum = 0;
    for (int j = 0; j < n; ++j) sum += in[j] * in[j];
    const float scale = 1.0f / sqrtf(sum / (float)n + (float)eps);
    for (int j = 0; j < n; ++j) out[j] = in[j] * scale * weight[j];
    if (saved) saved[i] = scale;
  }
  return 0;
}

/* The same, but it ends its process at rows of more than eight elements. */
int rms_normalize_short_rows(float* y, int64_t y_stride, const float* x, int64_t x_stride, const float* weight,
                             double eps, int rows, int n, float* saved) {
  if (n > 8) abort();
  return rms_normalize(y, y_stride, x, x_stride, weight, eps, rows, n, saved);
}

/* The same, and prints a line in every call. */
int rms_normalize_that_prints(float* y, int64_t y_stride, const float* x, int64_t x_stride, const float* weight,
                              double eps, int rows, int n, float* saved) {
  fprintf(stderr, "rms_normalize was called\n");
  return rms_normalize(y, y_stride, x, x_stride, weight, eps, rows, n, saved);
}

/* The same with four partial sums, as in a vectorized kernel. Omits the columns past the last multiple of four. */
int rms_normalize_by_four(float* y, int64_t y_stride, const float* x, int64_t x_stride, const float* weight, double eps,
                          int rows, int n, float* saved) {
  for (int i = 0; i < rows; ++i) {
    const float* in = x + i * x_stride;
    float* out = y + i * y_stride;
    float sums[4] = {0, 0, 0, 0};
    for (int j = 0; j + 4 <= n; j += 4)
      for (int lane = 0; lane < 4; ++lane) sums[lane] += in[j + lane] * in[j + lane];
    const float sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    const float scale = 1.0f / sqrtf(sum / (float)n + (float)eps);
    for (int j = 0; j < n; ++j) out[j] = in[j] * scale * weight[j];
    if (saved) saved[i] = scale;
  }
  return 0;
}
