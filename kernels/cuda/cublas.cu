#include <cublas_v2.h>

#include <limits>

#include "kernels/cuda/cublas.hpp"

namespace assay::cuda_kernels {
namespace {

void check(const char* call, cublasStatus_t status) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw DeviceError(call, cublasGetStatusName(status), cublasGetStatusString(status));
}

/// Returns the process's one handle, for its one device; process exit frees it.
cublasHandle_t handle(Device& device) {
  static const cublasHandle_t made = [&] {
    cublasHandle_t h = nullptr;
    check("cublasCreate", cublasCreate(&h));
    check("cublasSetStream", cublasSetStream(h, static_cast<CudaDevice&>(device).stream()));
    return h;
  }();
  return made;
}

int narrow(Index extent) {
  if (extent > std::numeric_limits<int>::max())
    throw Unavailable("cuBLAS", "its dimensions and strides are 32-bit integers; here is " + std::to_string(extent));
  return static_cast<int>(extent);
}

constexpr float kOne = 1, kZero = 0;

template <class S>
constexpr cudaDataType_t cuda_type = CUDA_R_32F;
template <>
constexpr cudaDataType_t cuda_type<Half> = CUDA_R_16F;
template <>
constexpr cudaDataType_t cuda_type<BFloat16> = CUDA_R_16BF;

}  // namespace

// cuBLAS is column-major: compute Cᵀ = op(B)ᵀ·op(A)ᵀ, since cuBLAS reads every row-major matrix as its transpose.
void cublas_sgemm(const Product& p, bool a_transposed, bool b_transposed, CublasMath math, Device& device) {
  const cublasHandle_t h = handle(device);
  if (static_cast<CudaDevice&>(device).preparing()) return;
  check("cublasSetMathMode",
        cublasSetMathMode(h, math == CublasMath::tf32 ? CUBLAS_TF32_TENSOR_OP_MATH : CUBLAS_DEFAULT_MATH));
  check("cublasSgemm", cublasSgemm(h, b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N,
                                   a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N, narrow(p.n), narrow(p.m), narrow(p.k),
                                   &kOne, p.b, narrow(p.b_ld), p.a, narrow(p.a_ld), &kZero, p.c, narrow(p.c_ld)));
}

template <class S, class Out>
void cublas_gemm_ex(const ProductOf<S, Out>& p, bool a_transposed, bool b_transposed, Device& device) {
  const cublasHandle_t h = handle(device);
  if (static_cast<CudaDevice&>(device).preparing()) return;
  constexpr auto kDefault = static_cast<unsigned>(CUBLAS_DEFAULT_MATH);
  constexpr auto kSumsIn32Bits = static_cast<unsigned>(CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION);
  check("cublasSetMathMode", cublasSetMathMode(h, static_cast<cublasMath_t>(kDefault | kSumsIn32Bits)));
  check("cublasGemmEx",
        cublasGemmEx(h, b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N, a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N, narrow(p.n),
                     narrow(p.m), narrow(p.k), &kOne, p.b, cuda_type<S>, narrow(p.b_ld), p.a, cuda_type<S>,
                     narrow(p.a_ld), &kZero, p.c, cuda_type<Out>, narrow(p.c_ld), CUBLAS_COMPUTE_32F,
                     CUBLAS_GEMM_DEFAULT));
}
template void cublas_gemm_ex(const ProductOf<Half>& p, bool a_transposed, bool b_transposed, Device& device);
template void cublas_gemm_ex(const ProductOf<BFloat16>& p, bool a_transposed, bool b_transposed, Device& device);
template void cublas_gemm_ex(const ProductOf<Half, float>& p, bool a_transposed, bool b_transposed, Device& device);
template void cublas_gemm_ex(const ProductOf<BFloat16, float>& p, bool a_transposed, bool b_transposed, Device& device);

void cublas_sgemv(Index m, Index k, const float* a, Index a_ld, const float* x, Index x_step, float* y, Index y_step,
                  Device& device) {
  const cublasHandle_t h = handle(device);
  if (static_cast<CudaDevice&>(device).preparing()) return;
  check("cublasSetMathMode", cublasSetMathMode(h, CUBLAS_DEFAULT_MATH));
  check("cublasSgemv", cublasSgemv(h, CUBLAS_OP_T, narrow(k), narrow(m), &kOne, a, narrow(a_ld), x, narrow(x_step),
                                   &kZero, y, narrow(y_step)));
}

}  // namespace assay::cuda_kernels
