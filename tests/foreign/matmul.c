/* A matrix product over DLPack tensors: assay/plugin.h. */
#include <assay/plugin.h>
#include <stdio.h>

static float* at(const DLTensor* t, int64_t i, int64_t j) {
  return (float*)t->data + i * t->strides[0] + j * t->strides[1];
}

/* C = A B, row by row. */
int my_matmul(const assay_call* call) {
  const int64_t m = call->dims[0], k = call->dims[1], n = call->dims[2];
  const DLTensor *a = &call->tensors[0], *b = &call->tensors[1], *c = &call->tensors[2];
  if (c->dtype.code != kDLFloat || c->dtype.bits != 32) {
    snprintf(call->message, call->message_bytes, "it multiplies float32 only");
    return ASSAY_REFUSED;
  }
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      float sum = 0;
      for (int64_t p = 0; p < k; ++p) sum += *at(a, i, p) * *at(b, p, j);
      *at(c, i, j) = sum;
    }
  return ASSAY_DONE;
}

const char* my_matmul_declares(void) { return "accumulator=f32,deterministic=yes"; }
