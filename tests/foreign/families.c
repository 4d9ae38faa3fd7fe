/* Functions with the argument lists of well-known projects, for the shims of families.yaml; a macro per fault plants
 * it. Written for this test; only the order and the types of the arguments come from the projects. */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* BLIS: strides of rows and columns, scalars by address. */
void blis_gemm(int trans_a, int trans_b, int64_t m, int64_t n, int64_t k, const float* alpha, const float* a,
               int64_t rs_a, int64_t cs_a, const float* b, int64_t rs_b, int64_t cs_b, const float* beta, float* c,
               int64_t rs_c, int64_t cs_c) {
  (void)trans_a, (void)trans_b;
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      float sum = 0;
      for (int64_t p = 0; p < k; ++p) sum += a[i * rs_a + p * cs_a] * b[p * rs_b + j * cs_b];
      c[i * rs_c + j * cs_c] = *beta == 0 ? *alpha * sum : *alpha * sum + *beta * c[i * rs_c + j * cs_c];
    }
}

/* Fortran BLAS: everything by address, characters as text, column-major. */
void fortran_gemm_(const char* trans_a, const char* trans_b, const int* m, const int* n, const int* k,
                   const float* alpha, const float* a, const int* lda, const float* b, const int* ldb,
                   const float* beta, float* c, const int* ldc) {
  if (*trans_a != 'N' || *trans_b != 'N' || *lda < *m || *ldb < *k || *ldc < *m) return;
  for (int j = 0; j < *n; ++j)
    for (int i = 0; i < *m; ++i) {
      float sum = 0;
      for (int p = 0; p < *k; ++p) sum += a[i + (int64_t)p * *lda] * b[p + (int64_t)j * *ldb];
      c[i + (int64_t)j * *ldc] = *alpha * sum + (*beta == 0 ? 0 : *beta * c[i + (int64_t)j * *ldc]);
    }
}

/* oneDNN: characters by value, status. */
int dnn_gemm(char trans_a, char trans_b, int64_t m, int64_t n, int64_t k, float alpha, const float* a, int64_t lda,
             const float* b, int64_t ldb, float beta, float* c, int64_t ldc) {
  if (trans_a != 'N' || trans_b != 'N') return 2;
  if (lda < k || ldb < n || ldc < n) return 3;
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      float sum = 0;
      for (int64_t p = 0; p < k; ++p) sum += a[i * lda + p] * b[p * ldb + j];
      c[i * ldc + j] = alpha * sum + (beta == 0 ? 0 : beta * c[i * ldc + j]);
    }
  return 0;
}

/* Packs B into a workspace by panels of eight columns; k must be a multiple of eight. `beyond` packs one group too
 * many. */
static void packed(const float* a, const float* b, float* c, int m, int k, int n, float* work, int beyond) {
  if (k % 8 != 0) abort();
  const int panels = (n + 7) / 8;
  for (int p = 0; p < panels; ++p)
    for (int q = 0; q < k; ++q)
      for (int j = 0; j < 8; ++j)
        work[((int64_t)p * k + q) * 8 + j] = 8 * p + j < n ? b[(int64_t)q * n + 8 * p + j] : 0;
  if (beyond) work[(int64_t)panels * k * 8] = 0;
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) {
      float sum = 0;
      for (int q = 0; q < k; ++q) sum += a[(int64_t)i * k + q] * work[((int64_t)(j / 8) * k + q) * 8 + j % 8];
      c[(int64_t)i * n + j] = sum;
    }
}
void packed_gemm(const float* a, const float* b, float* c, int m, int k, int n, float* work) {
  packed(a, b, c, m, k, n, work, 0);
}
void packed_gemm_beyond(const float* a, const float* b, float* c, int m, int k, int n, float* work) {
  packed(a, b, c, m, k, n, work, 1);
}
/* Assumes that its workspace starts zeroed. */
void packed_gemm_unset(const float* a, const float* b, float* c, int m, int k, int n, float* work) {
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) {
      float sum = work[0];
      for (int q = 0; q < k; ++q) sum += a[(int64_t)i * k + q] * b[(int64_t)q * n + j];
      c[(int64_t)i * n + j] = sum;
    }
}

/* ggml: one row of a product, unused byte strides, a count of rows. */
void vec_dot(int n, float* s, size_t bs, const float* x, size_t bx, const float* y, size_t by, int nrc) {
  (void)bs, (void)bx, (void)by, (void)nrc;
  float sum = 0;
  for (int i = 0; i < n; ++i) sum += x[i] * y[i];
  *s = sum;
}
/* BLAS level 1: returns the result. */
float dot(int n, const float* x, int incx, const float* y, int incy) {
  float sum = 0;
  for (int i = 0; i < n; ++i) sum += x[(int64_t)i * incx] * y[(int64_t)i * incy];
  return sum;
}
double nrm2(int n, const float* x, int incx) {
  double sum = 0;
  for (int i = 0; i < n; ++i) sum += (double)x[(int64_t)i * incx] * x[(int64_t)i * incx];
  return sqrt(sum);
}

/* ggml: element counts and byte strides, positions as an array, parameters of attention scaling. */
void rope_norm(const char* x, char* dst, int64_t ne0, int64_t ne1, int64_t nr, size_t nb1, size_t nb2, size_t dnb1,
               size_t dnb2, const int32_t* pos, float freq_base, const float* freq_factors) {
  (void)freq_factors;
  for (int64_t r = 0; r < nr; ++r)
    for (int64_t h = 0; h < ne1; ++h) {
      const float* in = (const float*)(x + r * nb2 + h * nb1);
      float* out = (float*)(dst + r * dnb2 + h * dnb1);
      for (int64_t i = 0; i < ne0; i += 2) {
        const double angle = (double)pos[r] * pow((double)freq_base, -(double)i / (double)ne0);
        const float c = (float)cos(angle), s = (float)sin(angle);
        out[i] = in[i] * c - in[i + 1] * s;
        out[i + 1] = in[i] * s + in[i + 1] * c;
      }
    }
}

/* ggml: in place, counted in elements; and one row of a softmax, with a mask that may be NULL. */
void scale_in_place(int n, float* y, float v) {
  for (int i = 0; i < n; ++i) y[i] *= v;
}
void silu_all(int n, float* y, const float* x) {
  for (int i = 0; i < n; ++i) y[i] = x[i] / (1 + expf(-x[i]));
}
void soft_max_row(const char* x, const float* mask, char* dst, int ncols, int nrows, size_t nb, size_t dnb,
                  float scale) {
  for (int i = 0; i < nrows; ++i) {
    const float* in = (const float*)(x + (size_t)i * nb);
    float* out = (float*)(dst + (size_t)i * dnb);
    float max = -INFINITY, sum = 0;
    int bad = 0;
    for (int j = 0; j < ncols; ++j) {
      const float v = scale * in[j] + (mask ? mask[j] : 0);
      bad |= isnan(v) || v == INFINITY;
      if (v > max) max = v;
    }
    for (int j = 0; j < ncols; ++j) sum += out[j] = bad ? NAN : max == -INFINITY ? 0 : expf(scale * in[j] - max);
    for (int j = 0; j < ncols; ++j) out[j] = max == -INFINITY && !bad ? 0 : out[j] / sum;
  }
}

/* llm.c: batch, time and channels; a bias that may be NULL; accumulated gradients; saved scores; q, k and v in one
 * tensor. */
void linear_forward(float* out, const float* inp, const float* weight, const float* bias, int B, int T, int C, int OC) {
  for (int bt = 0; bt < B * T; ++bt)
    for (int o = 0; o < OC; ++o) {
      float val = bias != NULL ? bias[o] : 0;
      for (int i = 0; i < C; ++i) val += inp[(int64_t)bt * C + i] * weight[(int64_t)o * C + i];
      out[(int64_t)bt * OC + o] = val;
    }
}
void residual_forward(float* out, const float* inp1, const float* inp2, int N) {
  for (int i = 0; i < N; ++i) out[i] = inp1[i] + inp2[i];
}
void softmax_backward_adds(float* dinp, const float* dout, const float* att, int B, int T, int V) {
  for (int bt = 0; bt < B * T; ++bt) {
    const float *y = att + (int64_t)bt * V, *dy = dout + (int64_t)bt * V;
    float sum = 0;
    for (int i = 0; i < V; ++i) sum += y[i] * dy[i];
    for (int i = 0; i < V; ++i) dinp[(int64_t)bt * V + i] += y[i] * (dy[i] - sum);
  }
}
static void attend(float* out, float* preatt, float* att, const float* inp, int B, int T, int C, int NH, int beyond) {
  const int hs = C / NH;
  const float scale = 1.0f / sqrtf((float)hs);
  for (int b = 0; b < B; ++b)
    for (int t = 0; t < T; ++t)
      for (int h = 0; h < NH; ++h) {
        const float* q = inp + (int64_t)(b * T + t) * 3 * C + h * hs;
        float *pre = preatt + ((int64_t)(b * NH + h) * T + t) * T, *prob = att + ((int64_t)(b * NH + h) * T + t) * T;
        float max = -INFINITY, sum = 0;
        for (int t2 = 0; t2 <= t; ++t2) {
          const float* k = inp + (int64_t)(b * T + t2) * 3 * C + C + h * hs;
          float val = 0;
          for (int i = 0; i < hs; ++i) val += q[i] * k[i];
          pre[t2] = val * scale;
          if (pre[t2] > max || isnan(pre[t2])) max = pre[t2];
          if (isnan(max)) pre[t2] = max;
        }
        for (int t2 = 0; t2 <= t; ++t2) sum += prob[t2] = max == -INFINITY ? 0 : expf(pre[t2] - max);
        float* y = out + (int64_t)(b * T + t) * C + h * hs;
        for (int i = 0; i < hs; ++i) {
          float mean = 0;
          for (int t2 = 0; t2 <= t && sum != 0; ++t2)
            mean += prob[t2] * inp[(int64_t)(b * T + t2) * 3 * C + 2 * C + h * hs + i];
          y[i] = sum == 0 ? 0 : mean / sum;
        }
      }
  if (beyond) att[(int64_t)B * NH * T * T] = 0;
}
void attention_forward(float* out, float* preatt, float* att, const float* inp, int B, int T, int C, int NH) {
  attend(out, preatt, att, inp, B, T, C, NH, 0);
}
void attention_forward_beyond(float* out, float* preatt, float* att, const float* inp, int B, int T, int C, int NH) {
  attend(out, preatt, att, inp, B, T, C, NH, 1);
}
void adamw(float* params, const float* grads, float* m, float* v, int t, long n, float lr, float beta1, float beta2,
           float eps, float decay) {
  const float of_m = (float)(1 - (double)beta1), of_v = (float)(1 - (double)beta2),
              keep = (float)(1 - (double)lr * decay);
  const float size = (float)(lr / (1 - pow((double)beta1, t))), root = (float)(1 / sqrt(1 - pow((double)beta2, t)));
  for (long i = 0; i < n; ++i) {
    m[i] = beta1 * m[i] + of_m * grads[i];
    v[i] = beta2 * v[i] + of_v * (grads[i] * grads[i]);
    params[i] = keep * params[i] - size * m[i] / (sqrtf(v[i]) * root + eps);
  }
}

/* The step as an array of this one and the next. */
void adamw_counted(float* params, const float* grads, float* m, float* v, const int* steps, long n, float lr,
                   float beta1, float beta2, float eps, float decay) {
  adamw(params, grads, m, v, steps[1] - 1, n, lr, beta1, beta2, eps, decay);
}

/* RMSNorm whose saved root is optional, or required (`demands`). */
static void normalize(float* y, const float* x, const float* weight, float* rrms, float eps, int rows, int n) {
  for (int i = 0; i < rows; ++i) {
    float sum = 0;
    for (int j = 0; j < n; ++j) sum += x[(int64_t)i * n + j] * x[(int64_t)i * n + j];
    const float r = 1 / sqrtf(sum / (float)n + eps);
    for (int j = 0; j < n; ++j) y[(int64_t)i * n + j] = x[(int64_t)i * n + j] * r * weight[j];
    if (rrms) rrms[i] = r;
  }
}
void rms_optional(float* y, const float* x, const float* weight, float* rrms, float eps, int rows, int n) {
  normalize(y, x, weight, rrms, eps, rows, n);
}
void rms_demands(float* y, const float* x, const float* weight, float* rrms, float eps, int rows, int n) {
  normalize(y, x, weight, rrms, eps, rows, n);
  *(volatile float*)rrms = *(volatile float*)rrms;
}

/* Attention on one sequence at a time, its length by value. `all` reads past the length. */
static void sequence(const float* q, const float* k, const float* v, float* y, float* lse, int length, int s, int heads,
                     int kv_heads, int d, float scale) {
  for (int i = 0; i < s; ++i)
    for (int h = 0; h < heads; ++h) {
      const int g = h / (heads / kv_heads);
      float max = -INFINITY, sum = 0;
      for (int j = 0; j < length; ++j) {
        float score = 0;
        for (int c = 0; c < d; ++c)
          score += q[((int64_t)i * heads + h) * d + c] * k[((int64_t)j * kv_heads + g) * d + c];
        if (!isnan(max) && !(score * scale <= max)) max = score * scale;
      }
      float* out = y + ((int64_t)i * heads + h) * d;
      for (int c = 0; c < d; ++c) out[c] = 0;
      for (int j = 0; j < length && max != -INFINITY; ++j) {
        float score = 0;
        for (int c = 0; c < d; ++c)
          score += q[((int64_t)i * heads + h) * d + c] * k[((int64_t)j * kv_heads + g) * d + c];
        const float w = expf(score * scale - max);
        sum += w;
        for (int c = 0; c < d; ++c) out[c] += w * v[((int64_t)j * kv_heads + g) * d + c];
      }
      for (int c = 0; c < d && max != -INFINITY; ++c) out[c] /= sum;
      lse[(int64_t)h * s + i] = max == -INFINITY ? -INFINITY : max + logf(sum);
    }
}
void attend_sequence(const float* q, const float* k, const float* v, float* y, float* lse, int length, int s, int heads,
                     int kv_heads, int d, float scale) {
  sequence(q, k, v, y, lse, length, s, heads, kv_heads, d, scale);
}

/* Rows of a table. Variants refuse out-of-range ids before writing, on meeting one (`late`), never, or only above the
 * range. */
static int lookup(const int32_t* ids, const float* table, float* y, int t, int v, int h) {
  for (int i = 0; i < t; ++i) {
    if (ids[i] < 0 || ids[i] >= v) return 1;
    memcpy(y + (int64_t)i * h, table + (int64_t)ids[i] * h, sizeof(float) * (size_t)h);
  }
  return 0;
}
int rows_checked(const int32_t* ids, const float* table, float* y, int t, int v, int h) {
  for (int i = 0; i < t; ++i)
    if (ids[i] < 0 || ids[i] >= v) return 1;
  return lookup(ids, table, y, t, v, h);
}
int rows_checked_late(const int32_t* ids, const float* table, float* y, int t, int v, int h) {
  return lookup(ids, table, y, t, v, h);
}
int rows_unchecked(const int32_t* ids, const float* table, float* y, int t, int v, int h) {
  for (int i = 0; i < t; ++i)
    memcpy(y + (int64_t)i * h, table + (int64_t)(ids[i] < 0 || ids[i] >= v ? 0 : ids[i]) * h,
           sizeof(float) * (size_t)h);
  return 0;
}
int rows_upper_only(const int32_t* ids, const float* table, float* y, int t, int v, int h) {
  for (int i = 0; i < t; ++i)
    if (ids[i] >= v) return 1;
  for (int i = 0; i < t; ++i)
    memcpy(y + (int64_t)i * h, table + (int64_t)(ids[i] < 0 ? 0 : ids[i]) * h, sizeof(float) * (size_t)h);
  return 0;
}
