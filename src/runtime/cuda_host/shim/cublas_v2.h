// Replaces CUDA's cublas_v2.h: matrix products in float32 by plain loops, one rounding per product and sum. Others do
// not run on cuda-host: they end the call with a sentence.
#pragma once

#include <string>

#include "core/errors.hpp"
#include "cuda_bf16.h"
#include "cuda_fp16.h"
#include "cuda_runtime.h"

namespace assay::cuda_host::toolkit {

enum cublasStatus_t { CUBLAS_STATUS_SUCCESS = 0, CUBLAS_STATUS_NOT_SUPPORTED = 15 };
enum cublasOperation_t { CUBLAS_OP_N, CUBLAS_OP_T, CUBLAS_OP_C };
enum cublasMath_t { CUBLAS_DEFAULT_MATH, CUBLAS_TENSOR_OP_MATH, CUBLAS_PEDANTIC_MATH, CUBLAS_TF32_TENSOR_OP_MATH };
enum cublasComputeType_t {
  CUBLAS_COMPUTE_16F = 64,
  CUBLAS_COMPUTE_32F = 68,
  CUBLAS_COMPUTE_32F_FAST_16F = 74,
  CUBLAS_COMPUTE_32F_FAST_16BF = 75,
  CUBLAS_COMPUTE_32F_FAST_TF32 = 77
};
enum cublasGemmAlgo_t { CUBLAS_GEMM_DEFAULT = -1, CUBLAS_GEMM_DEFAULT_TENSOR_OP = 99 };
enum cudaDataType { CUDA_R_32F = 0, CUDA_R_64F = 1, CUDA_R_16F = 2, CUDA_R_8I = 3, CUDA_R_32I = 10, CUDA_R_16BF = 14 };
using cudaDataType_t = cudaDataType;
using cublasDataType_t = cudaDataType;
using cublasHandle_t = struct cublasContext*;

inline cublasStatus_t cublasCreate(cublasHandle_t* handle) {
  *handle = nullptr;
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasDestroy(cublasHandle_t) { return CUBLAS_STATUS_SUCCESS; }
inline cublasStatus_t cublasSetMathMode(cublasHandle_t, cublasMath_t) { return CUBLAS_STATUS_SUCCESS; }
inline cublasStatus_t cublasSetStream(cublasHandle_t, cudaStream_t) { return CUBLAS_STATUS_SUCCESS; }

/// C = alpha op(A) op(B) + beta C, all by columns.
inline cublasStatus_t cublasSgemm(cublasHandle_t, cublasOperation_t a_op, cublasOperation_t b_op, int m, int n, int k,
                                  const float* alpha, const float* a, int lda, const float* b, int ldb,
                                  const float* beta, float* c, int ldc) {
  const auto at = [](const float* matrix, int ld, cublasOperation_t op, int row, int column) {
    return op == CUBLAS_OP_N ? matrix[row + static_cast<std::ptrdiff_t>(column) * ld]
                             : matrix[column + static_cast<std::ptrdiff_t>(row) * ld];
  };
  for (int j = 0; j < n; ++j)
    for (int i = 0; i < m; ++i) {
      float sum = 0.0f;
      for (int p = 0; p < k; ++p) sum += at(a, lda, a_op, i, p) * at(b, ldb, b_op, p, j);
      float& out = c[i + static_cast<std::ptrdiff_t>(j) * ldc];
      out = *beta == 0.0f ? *alpha * sum : *alpha * sum + *beta * out;
    }
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasSgemmStridedBatched(cublasHandle_t handle, cublasOperation_t a_op, cublasOperation_t b_op,
                                                int m, int n, int k, const float* alpha, const float* a, int lda,
                                                long long a_stride, const float* b, int ldb, long long b_stride,
                                                const float* beta, float* c, int ldc, long long c_stride, int count) {
  for (int i = 0; i < count; ++i)
    cublasSgemm(handle, a_op, b_op, m, n, k, alpha, a + i * a_stride, lda, b + i * b_stride, ldb, beta,
                c + i * c_stride, ldc);
  return CUBLAS_STATUS_SUCCESS;
}
/// y = alpha op(A) x + beta y.
inline cublasStatus_t cublasSgemv(cublasHandle_t handle, cublasOperation_t op, int m, int n, const float* alpha,
                                  const float* a, int lda, const float* x, int x_step, const float* beta, float* y,
                                  int y_step) {
  const int rows = op == CUBLAS_OP_N ? m : n, terms = op == CUBLAS_OP_N ? n : m;
  return cublasSgemm(handle, CUBLAS_OP_N, op == CUBLAS_OP_N ? CUBLAS_OP_T : CUBLAS_OP_N, 1, rows, terms, alpha, x,
                     x_step, a, lda, beta, y, y_step);
}

[[noreturn]] inline void not_on_the_host(const char* function) {
  throw DeviceError(
      "library call", "not on cuda-host",
      std::string(function) + " does not run here: call cublasSgemm, or falsify on a device (backend=cuda)");
}
#define ASSAY_ABSENT(name)           \
  template <class... A>              \
  cublasStatus_t name(const A&...) { \
    not_on_the_host(#name);          \
  }
ASSAY_ABSENT(cublasGemmEx)
ASSAY_ABSENT(cublasGemmStridedBatchedEx)
ASSAY_ABSENT(cublasGemmBatchedEx)
ASSAY_ABSENT(cublasHgemm)
ASSAY_ABSENT(cublasDgemm)

}  // namespace assay::cuda_host::toolkit
