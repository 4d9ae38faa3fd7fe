// cuBLAS as a peer to compare with, on CUDA devices only.
#pragma once

#include "kernels/cuda/mma.cuh"
#include "kernels/cuda/product.cuh"

namespace assay::cuda_kernels {

enum class CublasMath { f32, tf32 };

inline constexpr std::string_view kCublas = "cublasSgemm, CUBLAS_DEFAULT_MATH";
inline constexpr std::string_view kCublasTf32 = "cublasSgemm, CUBLAS_TF32_TENSOR_OP_MATH";
inline constexpr std::string_view kCublasEx = "cublasGemmEx, CUBLAS_COMPUTE_32F";
/// NVIDIA does not document how cuBLAS rounds its inputs; tensor cores drop the low bits of float32 words.
inline constexpr Arithmetic kCublasTf32Arithmetic{
    .inputs = Format::tf32, .input_rounding = Rounding::toward_zero, .accumulation = Rounding::toward_zero, .block = 4};

/// C = op(A)·op(B) with alpha = 1, beta = 0. Throws Unavailable for leading dimensions over 2^31 - 1, DeviceError if
/// cuBLAS fails.
void cublas_sgemm(const Product& p, bool a_transposed, bool b_transposed, CublasMath math, Device& device);
/// The same for matrices of 16 bits, with sums in float32; C is of the format of A and B or float32.
template <class S, class Out>
void cublas_gemm_ex(const ProductOf<S, Out>& p, bool a_transposed, bool b_transposed, Device& device);
/// y[i] = sum_p a[i,p] * x[p]; strides in elements.
void cublas_sgemv(Index m, Index k, const float* a, Index a_ld, const float* x, Index x_step, float* y, Index y_step,
                  Device& device);

template <bool a_transposed, bool b_transposed, CublasMath math>
void cublas_product(const Product& p, Device& device) {
  cublas_sgemm(p, a_transposed, b_transposed, math, device);
}

template <bool a_transposed, bool b_transposed, class S, class Out = S>
void cublas_product_ex(const ProductOf<S, Out>& p, Device& device) {
  cublas_gemm_ex(p, a_transposed, b_transposed, device);
}

/// Replaces the limits of our own kernels by cuBLAS's. In both matmul and gemv dim 1 is k; for k = 0 cuBLAS 13.0 was
/// observed to leave y unwritten, and to reject a leading dimension of 0.
inline std::optional<std::string> refuse_peer(const Call& call) {
  if (call.dims[1] == 0)
    return "for k = 0 cublasSgemv leaves y unwritten and cublasSgemm rejects the leading dimension";
  for (const Tensor& t : call.tensors)
    for (int axis = 0; axis < t.shape.rank(); ++axis)
      if (t.shape[axis] > 0x7fffffff || t.strides[axis] > 0x7fffffff)
        return "cuBLAS takes dimensions and strides of at most 2^31 - 1";
  return std::nullopt;
}

inline Kernel as_peer(Kernel kernel) {
  kernel.role = KernelRole::peer;
  kernel.refuse = &refuse_peer;
  return kernel;
}

}  // namespace assay::cuda_kernels
