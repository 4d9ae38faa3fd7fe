// C = A·B with CUDA: the kernels of naive16.cuh, register_tiled.cuh and tf32_wmma.cuh, and cuBLAS.
#include "kernels/cuda/naive16.cuh"
#include "kernels/cuda/register_tiled.cuh"
#include "kernels/cuda/tf32_wmma.cuh"
#include "ops/matmul.hpp"
#if defined(__CUDACC__)
#include "kernels/cuda/cublas.hpp"
#endif

namespace assay::ASSAY_CUDA_NAMESPACE::of_matmul {
namespace {

using ops::MatmulArgs;

const KernelRegistration naive16_registration{
    product_kernel<MatmulArgs, &naive16<false, false>>("matmul/" ASSAY_CUDA_NAME "/naive16", kNaive16)};
const KernelRegistration register_tiled_registration{
    preferred(product_kernel<MatmulArgs, &register_tiled<false, false>, 128>(
        "matmul/" ASSAY_CUDA_NAME "/register_tiled", kRegisterTiled))};
const KernelRegistration tf32_wmma_registration{declaring(
    kTf32Arithmetic,
    product_kernel<MatmulArgs, &tf32_wmma<false, false>, 128>("matmul/" ASSAY_CUDA_NAME "/tf32_wmma", kTf32Wmma))};

#if defined(__CUDACC__)
const KernelRegistration cublas_f32_registration{
    as_peer(product_kernel<MatmulArgs, &cublas_product<false, false, CublasMath::f32>>("matmul/cuda/cublas", kCublas))};
const KernelRegistration cublas_tf32_registration{as_peer(
    declaring(kCublasTf32Arithmetic, product_kernel<MatmulArgs, &cublas_product<false, false, CublasMath::tf32>>(
                                         "matmul/cuda/cublas_tf32", kCublasTf32)))};
#endif

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_matmul
