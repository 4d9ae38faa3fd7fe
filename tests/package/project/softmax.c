/* Two softmax functions as in a library: `rows` rows of n floats with strides y_stride and x_stride. */
#include <math.h>

/* exp(x) / sum(exp(x)), evaluated literally. */
void softmax_by_formula(float* y, int y_stride, const float* x, int x_stride, int rows, int n) {
  for (int i = 0; i < rows; ++i, x += x_stride, y += y_stride) {
    float sum = 0;
    for (int j = 0; j < n; ++j) sum += y[j] = expf(x[j]);
    for (int j = 0; j < n; ++j) y[j] /= sum;
  }
}

/* The same, shifted by the row's maximum, so that nothing overflows; a row of -inf gives zeros. */
void softmax_shifted(float* y, int y_stride, const float* x, int x_stride, int rows, int n) {
  for (int i = 0; i < rows; ++i, x += x_stride, y += y_stride) {
    float maximum = x[0], sum = 0;
    for (int j = 1; j < n; ++j)
      if (x[j] > maximum) maximum = x[j];
    for (int j = 0; j < n; ++j) sum += y[j] = x[j] == -INFINITY ? 0 : expf(x[j] - maximum);
    for (int j = 0; j < n && sum != 0; ++j) y[j] /= sum;
  }
}
