/* Ten plausible kernels, each with one fault. */
#include <assay/plugin.h>
#include <math.h>

static float* at(const DLTensor* t, int64_t i, int64_t j) {
  return (float*)t->data + i * t->strides[0] + j * t->strides[1];
}

/* Volatile: gcc 12 drops the truncation at -O1 and -O2 (not at -O3), which would make the kernel correct. */
static float to_bf16(float x) {
  union {
    float value;
    uint32_t bits;
  } cut = {x};
  volatile uint32_t bits = cut.bits & 0xffff0000u;
  cut.bits = bits;
  return cut.value;
}

enum fault { dropped_last_k, dense_rows, bf16_inputs, skipped_zeros, unwritten_row };

static int product(const assay_call* call, enum fault fault) {
  const int64_t m = call->dims[0], k = call->dims[1], n = call->dims[2];
  const DLTensor *a = &call->tensors[0], *b = &call->tensors[1], *c = &call->tensors[2];
  const int64_t terms = fault == dropped_last_k && k % 8 == 1 ? k - 1 : k;
  for (int64_t i = 0; i < m; ++i) {
    if (fault == unwritten_row && m % 4 == 3 && i == m - 1) continue;
    for (int64_t j = 0; j < n; ++j) {
      float sum = 0;
      for (int64_t p = 0; p < terms; ++p) {
        float x = fault == dense_rows ? ((float*)a->data)[i * k + p] : *at(a, i, p), y = *at(b, p, j);
        if (fault == skipped_zeros && x == 0) continue;
        if (fault == bf16_inputs) x = to_bf16(x), y = to_bf16(y);
        sum += x * y;
      }
      *at(c, i, j) = sum;
    }
  }
  return ASSAY_DONE;
}

/* Omits the last term if one remains after blocks of eight. */
int matmul_dropped_last_k(const assay_call* call) { return product(call, dropped_last_k); }
/* Reads rows of A as if they were dense. */
int matmul_dense_rows(const assay_call* call) { return product(call, dense_rows); }
/* Truncates inputs to bfloat16 without declaring it. */
int matmul_bf16_inputs(const assay_call* call) { return product(call, bf16_inputs); }
/* Skips zeros of A: 0 * NaN is lost. */
int matmul_skipped_zeros(const assay_call* call) { return product(call, skipped_zeros); }
/* Leaves the last row unwritten if three remain after blocks of four. */
int matmul_unwritten_row(const assay_call* call) { return product(call, unwritten_row); }

/* exp overflows: the maximum of a row is not subtracted. */
int softmax_without_maximum(const assay_call* call) {
  const DLTensor *x = &call->tensors[0], *y = &call->tensors[1];
  for (int64_t i = 0; i < x->shape[0]; ++i) {
    float sum = 0;
    for (int64_t j = 0; j < x->shape[1]; ++j) sum += *at(y, i, j) = expf(*at(x, i, j));
    for (int64_t j = 0; j < x->shape[1]; ++j) *at(y, i, j) /= sum;
  }
  return ASSAY_DONE;
}

/* Adds eps to the root instead of inside it. */
int rmsnorm_eps_outside(const assay_call* call) {
  const DLTensor *x = &call->tensors[0], *weight = &call->tensors[1], *y = &call->tensors[2], *rrms = &call->tensors[3];
  const float eps = (float)call->params[0];
  for (int64_t i = 0; i < x->shape[0]; ++i) {
    float sum = 0;
    for (int64_t j = 0; j < x->shape[1]; ++j) sum += *at(x, i, j) * *at(x, i, j);
    const float scale = 1 / (sqrtf(sum / (float)x->shape[1]) + eps);
    for (int64_t j = 0; j < x->shape[1]; ++j)
      *at(y, i, j) = *at(x, i, j) * scale * ((float*)weight->data)[j * weight->strides[0]];
    ((float*)rrms->data)[i * rrms->strides[0]] = scale;
  }
  return ASSAY_DONE;
}

/* Correct for square matrices only: the loop bounds of rows and columns are exchanged. */
int transpose_of_squares(const assay_call* call) {
  const DLTensor *x = &call->tensors[0], *y = &call->tensors[1];
  const int64_t least = x->shape[0] < x->shape[1] ? x->shape[0] : x->shape[1];
  for (int64_t i = 0; i < least; ++i)
    for (int64_t j = 0; j < least; ++j) *at(y, j, i) = *at(x, i, j);
  return ASSAY_DONE;
}

/* Keeps the factor of the first call. */
int scale_by_the_first(const assay_call* call) {
  static double alpha = 0;
  if (alpha == 0) alpha = call->params[0];
  for (int64_t i = 0; i < call->dims[0]; ++i)
    for (int64_t j = 0; j < call->dims[1]; ++j)
      *at(&call->tensors[1], i, j) = (float)alpha * *at(&call->tensors[0], i, j);
  return ASSAY_DONE;
}

/* Treats small values as 0. */
int silu_cut_off(const assay_call* call) {
  for (int64_t i = 0; i < call->dims[0]; ++i)
    for (int64_t j = 0; j < call->dims[1]; ++j) {
      const float x = *at(&call->tensors[0], i, j);
      *at(&call->tensors[1], i, j) = x < -16 ? 0 : x / (1 + expf(-x));
    }
  return ASSAY_DONE;
}
