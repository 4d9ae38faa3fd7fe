// y = A·x with CUDA.
#include "kernels/cuda/gemv.cuh"
#include "ops/gemv.hpp"
#if defined(__CUDACC__)
#include "kernels/cuda/cublas.hpp"
#endif

namespace assay::ASSAY_CUDA_NAMESPACE::of_gemv {
namespace {

using ops::GemvArgs;

constexpr std::string_view kSource = "kernels/cuda/gemv.cuh";

const KernelRegistration thread_per_row_row{
    gemv_kernel<GemvArgs, &thread_per_row<>>("gemv/" ASSAY_CUDA_NAME "/thread_per_row", kSource, "one thread a row")};
const KernelRegistration warp_per_row_row{preferred(gemv_kernel<GemvArgs, &warp_per_row<>>(
    "gemv/" ASSAY_CUDA_NAME "/warp_per_row", kSource, "one warp a row, lanes along it, summed by shuffles"))};
const KernelRegistration block_per_row_row{gemv_kernel<GemvArgs, &block_per_row<>>(
    "gemv/" ASSAY_CUDA_NAME "/block_per_row", kSource, "one block of up to 256 threads a row, summed by shuffles")};

#if defined(__CUDACC__)
void cublas(const MatrixVector& v, Device& device) {
  cublas_sgemv(v.m, v.k, v.a, v.a_ld, v.x, v.x_step, v.y, v.y_step, device);
}
const KernelRegistration cublas_row{
    as_peer(gemv_kernel<GemvArgs, &cublas>("gemv/cuda/cublas", "kernels/cuda/cublas.cu", "cublasSgemv"))};
#endif

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_gemv
