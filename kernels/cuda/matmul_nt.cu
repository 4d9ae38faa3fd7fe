// C = A·Bᵀ with CUDA: the kernels of naive16.cuh, register_tiled.cuh, tf32_wmma.cuh,
// mma_product.cuh, wgmma_product.cuh and few_rows.cuh, and cuBLAS.
#include "kernels/cuda/few_rows.cuh"
#include "kernels/cuda/mma_product.cuh"
#include "kernels/cuda/naive16.cuh"
#include "kernels/cuda/register_tiled.cuh"
#include "kernels/cuda/tf32_wmma.cuh"
#include "kernels/cuda/wgmma_product.cuh"
#include "ops/matmul_nt.hpp"
#if defined(__CUDACC__)
#include "kernels/cuda/cublas.hpp"
#endif

namespace assay::ASSAY_CUDA_NAMESPACE::of_matmul_nt {
namespace {

using ops::MatmulNtArgs;

const KernelRegistration naive16_registration{
    product_kernel<MatmulNtArgs, &naive16<false, true>>("matmul_nt/" ASSAY_CUDA_NAME "/naive16", kNaive16)};
const KernelRegistration register_tiled_registration{
    preferred(product_kernel<MatmulNtArgs, &register_tiled<false, true>, 128>(
        "matmul_nt/" ASSAY_CUDA_NAME "/register_tiled", kRegisterTiled))};
const KernelRegistration tf32_wmma_registration{declaring(
    kTf32Arithmetic,
    product_kernel<MatmulNtArgs, &tf32_wmma<false, true>, 128>("matmul_nt/" ASSAY_CUDA_NAME "/tf32_wmma", kTf32Wmma))};

template <class S>
Kernel naive16_stored(std::string_view id) {
  return product_kernel<MatmulNtArgs, &naive16<false, true, S>>(id, kNaive16);
}
template <class S>
Kernel mma(std::string_view id) {
  return preferred(
      declaring(mma_arithmetic<S>(), product_kernel<MatmulNtArgs, &mma_product<false, true, S>, 128>(id, kMmaProduct)));
}
template <class S, bool split = false>
Kernel wgmma(std::string_view id, std::string_view summary = kWgmmaProduct) {
  return wgmma_kernel<S, 1>(product_kernel<MatmulNtArgs, &wgmma_product<false, true, S, S, split>, 128>(id, summary),
                            [](const Call& call) {
                              const auto args = MatmulNtArgs::unpack(call);
                              return refuse_factors<S>(args.a, args.b);
                            });
}
template <class S>
Kernel few_rows_stored(std::string_view id, std::string_view summary = kFewRows) {
  return for_few_rows<S>(product_kernel<MatmulNtArgs, &few_rows<S>>(id, summary));
}
const KernelRegistration stored[] = {
    KernelRegistration(naive16_stored<Half>("matmul_nt/" ASSAY_CUDA_NAME "/naive16_f16")),
    KernelRegistration(naive16_stored<BFloat16>("matmul_nt/" ASSAY_CUDA_NAME "/naive16_bf16")),
    KernelRegistration(mma<Half>("matmul_nt/" ASSAY_CUDA_NAME "/mma_f16")),
    KernelRegistration(mma<BFloat16>("matmul_nt/" ASSAY_CUDA_NAME "/mma_bf16")),
    KernelRegistration(wgmma<Half>("matmul_nt/" ASSAY_CUDA_NAME "/wgmma_f16")),
    KernelRegistration(wgmma<BFloat16>("matmul_nt/" ASSAY_CUDA_NAME "/wgmma_bf16")),
    KernelRegistration(few_rows_stored<Half>("matmul_nt/" ASSAY_CUDA_NAME "/few_rows_f16")),
    KernelRegistration(few_rows_stored<BFloat16>("matmul_nt/" ASSAY_CUDA_NAME "/few_rows_bf16")),
    KernelRegistration(few_rows_stored<float>("matmul_nt/" ASSAY_CUDA_NAME "/few_rows_tf32x3", kFewRowsTf32x3)),
    KernelRegistration(
        declaring(kWgmmaTf32Arithmetic, wgmma<float>("matmul_nt/" ASSAY_CUDA_NAME "/wgmma_tf32", kWgmmaTf32))),
    KernelRegistration(wgmma<float, true>("matmul_nt/" ASSAY_CUDA_NAME "/wgmma_tf32x3", kWgmmaTf32x3))};

#if defined(__CUDACC__)
const KernelRegistration cublas_f32_registration{as_peer(
    product_kernel<MatmulNtArgs, &cublas_product<false, true, CublasMath::f32>>("matmul_nt/cuda/cublas", kCublas))};
const KernelRegistration cublas_tf32_registration{as_peer(
    declaring(kCublasTf32Arithmetic, product_kernel<MatmulNtArgs, &cublas_product<false, true, CublasMath::tf32>>(
                                         "matmul_nt/cuda/cublas_tf32", kCublasTf32)))};

template <class S>
Kernel cublas_stored(std::string_view id) {
  return as_peer(
      declaring(mma_arithmetic<S>(), product_kernel<MatmulNtArgs, &cublas_product_ex<false, true, S>>(id, kCublasEx)));
}
const KernelRegistration cublas_f16_registration{cublas_stored<Half>("matmul_nt/cuda/cublas_f16")};
const KernelRegistration cublas_bf16_registration{cublas_stored<BFloat16>("matmul_nt/cuda/cublas_bf16")};
#endif

}  // namespace
}  // namespace assay::ASSAY_CUDA_NAMESPACE::of_matmul_nt
