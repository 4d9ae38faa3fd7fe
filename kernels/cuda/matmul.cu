// C = A·B with CUDA: the kernels of naive16.cuh, register_tiled.cuh, tf32_wmma.cuh,
// mma_product.cuh and wgmma_product.cuh, and cuBLAS.
#include "kernels/cuda/mma_product.cuh"
#include "kernels/cuda/naive16.cuh"
#include "kernels/cuda/register_tiled.cuh"
#include "kernels/cuda/tf32_wmma.cuh"
#include "kernels/cuda/wgmma_product.cuh"
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

template <class S>
Kernel naive16_stored(std::string_view id) {
  return product_kernel<MatmulArgs, &naive16<false, false, S>>(id, kNaive16);
}
template <class S>
Kernel mma(std::string_view id) {
  return preferred(
      declaring(mma_arithmetic<S>(), product_kernel<MatmulArgs, &mma_product<false, false, S>, 128>(id, kMmaProduct)));
}
template <class S>
Kernel wgmma(std::string_view id) {
  return wgmma_kernel<S, 1, 2>(product_kernel<MatmulArgs, &wgmma_product<false, false, S>, 128>(id, kWgmmaProduct),
                               [](const Call& call) {
                                 const auto args = MatmulArgs::unpack(call);
                                 return refuse_factors<S>(args.a, args.b);
                               });
}
const KernelRegistration stored[] = {
    KernelRegistration(naive16_stored<Half>("matmul/" ASSAY_CUDA_NAME "/naive16_f16")),
    KernelRegistration(naive16_stored<BFloat16>("matmul/" ASSAY_CUDA_NAME "/naive16_bf16")),
    KernelRegistration(mma<Half>("matmul/" ASSAY_CUDA_NAME "/mma_f16")),
    KernelRegistration(mma<BFloat16>("matmul/" ASSAY_CUDA_NAME "/mma_bf16")),
    KernelRegistration(wgmma<Half>("matmul/" ASSAY_CUDA_NAME "/wgmma_f16")),
    KernelRegistration(wgmma<BFloat16>("matmul/" ASSAY_CUDA_NAME "/wgmma_bf16"))};

#if defined(__CUDACC__)
const KernelRegistration cublas_f32_registration{
    as_peer(product_kernel<MatmulArgs, &cublas_product<false, false, CublasMath::f32>>("matmul/cuda/cublas", kCublas))};
const KernelRegistration cublas_tf32_registration{as_peer(
    declaring(kCublasTf32Arithmetic, product_kernel<MatmulArgs, &cublas_product<false, false, CublasMath::tf32>>(
                                         "matmul/cuda/cublas_tf32", kCublasTf32)))};

template <class S>
Kernel cublas_stored(std::string_view id) {
  return as_peer(
      declaring(mma_arithmetic<S>(), product_kernel<MatmulArgs, &cublas_product_ex<false, false, S>>(id, kCublasEx)));
}
const KernelRegistration cublas_f16_registration{cublas_stored<Half>("matmul/cuda/cublas_f16")};
const KernelRegistration cublas_bf16_registration{cublas_stored<BFloat16>("matmul/cuda/cublas_bf16")};
#endif

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_matmul
